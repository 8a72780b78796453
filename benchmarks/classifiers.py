"""Bars 1 and 2: the share of images that each attack gets misclassified, at equal gradients.

Every attack moves in the same set. Solvers of ours are judged by a misclassified point anywhere on
their way, attacks of other libraries by what they return from each restart; both are seen again in
a last evaluation. Images that are solved cost no more evaluations.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from attacks import ATTACKS, attacks_in
from networks import BY_NORM
from outcome import Outcome, Target
from report import RESULTS, earlier, made_by, markdown, origin, write

HEADERS = ["network", "attack", "success", "seeds", "gradients at most", "on average"]


def summary(outcomes: list[Outcome]) -> dict:
    """What one attack did, an outcome for each seed."""
    return {
        "success": [100 * outcome.solved.float().mean().item() for outcome in outcomes],
        "mean_margin": [outcome.margin.mean().item() for outcome in outcomes],
        "most_gradients": max(int(outcome.gradients.max()) for outcome in outcomes),
        "mean_gradients": [outcome.gradients.float().mean().item() for outcome in outcomes],
        "mean_forwards": [outcome.forwards.float().mean().item() for outcome in outcomes],
        "seconds": sum(outcome.seconds for outcome in outcomes),
        **outcomes[0].notes,
    }


def row(entry: dict) -> list[object]:
    rates, spent = entry["success"], entry["mean_gradients"]
    first, end = entry["images"]
    digits = 2 if end - first > 1000 else 1
    spread = f"{min(rates):.{digits}f} to {max(rates):.{digits}f}" if len(rates) > 1 else "one"
    success = f"{sum(rates) / len(rates):.{digits}f} %"
    mean = round(sum(spent) / len(spent))
    return [entry["case"], entry["attack"], success, spread, entry["most_gradients"], mean]


def place(entry: dict) -> tuple[int, int]:
    """Where an entry stands in the table."""
    cases = [case.name for cases in BY_NORM.values() for case in cases]
    return cases.index(entry["case"]), list(ATTACKS).index(entry["attack"])


def page(known: dict[tuple[str, str], dict], options: argparse.Namespace) -> None:
    """Write what is known so far."""
    entries = sorted(known.values(), key=place)
    images = " and ".join(
        sorted({f"{first} to {end - 1}" for first, end in (e["images"] for e in entries)})
    )
    parts = [
        f"# Attack success, {options.budget} gradients for each image (numbers {images})",
        made_by(entries),
        markdown(HEADERS, [row(entry) for entry in entries]),
    ]
    write(options.name, "\n\n".join(parts) + "\n", {"results": entries}, options.out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--networks", nargs="+", default=[""], help="names must contain one of these"
    )
    parser.add_argument("--norm", default="inf", choices=BY_NORM, help="in which eps is measured")
    parser.add_argument("--attacks", nargs="+", default=[], choices=ATTACKS)
    parser.add_argument("--budget", type=int, default=1000, help="gradients for each image")
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the first image's number")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--name", default="classifiers", help="of the files that are written")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument(
        "--add", nargs="*", type=Path, default=[], help="JSON files of runs to put beside this one"
    )
    options = parser.parse_args()
    known = {(entry["case"], entry["attack"]): entry for entry in earlier(options.add)}
    for case in BY_NORM[options.norm]:
        if not any(part in case.name for part in options.networks):
            continue
        some = slice(options.first, options.first + options.images)
        target = Target.of(case, options.device, some)
        for name in options.attacks or attacks_in(options.norm):
            outcomes: list[Outcome] = []
            for seed in range(options.seeds):
                outcomes.append(ATTACKS[name](target, options.budget, seed))
                entry = {
                    "case": case.name,
                    "robust": case.robust,
                    "attack": name,
                    "budget": options.budget,
                    "images": [options.first, options.first + len(target.labels)],
                    **origin(options.device),
                    **summary(outcomes),
                }
                known[case.name, name] = entry
                print(*row(entry), f"{entry['seconds']:.1f} s", sep=" | ", flush=True)
                page(known, options)
    page(known, options)
    print((options.out / f"{options.name}.md").read_text())


if __name__ == "__main__":
    main()
