"""Bars 1 and 2: the share of images that each attack gets misclassified, at equal gradients.

Every attack moves in the same set and is judged alike: by a misclassified point anywhere on its
way, seen again in a last evaluation. Images that are solved cost no more evaluations.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from attacks import ATTACKS, Target
from networks import CASES, Case
from report import RESULTS, markdown, save


def measure(case: Case, options: argparse.Namespace, data: list[dict]) -> list[list[object]]:
    some = slice(options.first, options.first + options.images)
    target = Target.of(case, options.device, some)
    rows = []
    for name in options.attacks:
        outcomes = [ATTACKS[name](target, options.budget, seed) for seed in range(options.seeds)]
        rates = [100 * outcome.solved.float().mean().item() for outcome in outcomes]
        spread = f"{min(rates):.1f} to {max(rates):.1f}" if len(rates) > 1 else ""
        gradients = max(int(outcome.gradients.max()) for outcome in outcomes)
        seconds = sum(outcome.seconds for outcome in outcomes)
        rows.append([case.name, name, f"{sum(rates) / len(rates):.1f} %", spread, gradients])
        data.append(
            {
                "case": case.name,
                "robust": case.robust,
                "attack": name,
                "success": rates,
                "mean_margin": [outcome.margin.mean().item() for outcome in outcomes],
                "most_gradients": gradients,
                "mean_gradients": [o.gradients.float().mean().item() for o in outcomes],
                "mean_forwards": [o.forwards.float().mean().item() for o in outcomes],
                "seconds": seconds,
                **outcomes[0].notes,
            }
        )
        print(*rows[-1], f"{seconds:.1f} s", sep=" | ", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", default="", help="names of networks must contain this")
    parser.add_argument("--attacks", nargs="+", default=list(ATTACKS), choices=ATTACKS)
    parser.add_argument("--budget", type=int, default=1000, help="gradients for each image")
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the first image's number")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--name", default="classifiers", help="of the files that are written")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    data: list[dict] = []
    rows = [
        row
        for case in CASES
        if options.network in case.name
        for row in measure(case, options, data)
    ]
    headers = ["network", "attack", "success", "seeds", "gradients at most"]
    title = f"Attack success, {options.images} images, {options.budget} gradients for each"
    save(options.name, title, markdown(headers, rows), data, options.device, options.out)


if __name__ == "__main__":
    main()
