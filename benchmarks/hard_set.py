"""Bar 3: instances that Sign with 100 x 100 restarts misses and that something solves.

`build` looks for them on the robust networks of this project and writes `hard_set.json`; half
of them, those with even numbers within each network, are for tuning and the others are held out.
`run` attacks them and reports both halves.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from attacks import ATTACKS, Outcome, Target
from networks import CASES, Case
from report import RESULTS, machine, markdown, save
from torch import Tensor

SIGN_BUDGET = 10_000
FINDERS = {
    "APGD-T": (90_000, (71,)),
    "Sign, margin": (20_000, (71,)),
    "ours": (50_000, (71, 72)),
}
"""Who looks for solutions of what Sign misses: gradients, and seeds that no run uses.

Ours comes last, so that what others can find is not put down to it.
"""


@dataclass(frozen=True)
class Instance:
    """An image that is hard to misclassify."""

    case: str
    image: int
    solved_by: str
    held_out: bool


def hard_cases(part: str) -> Iterator[Case]:
    """Networks that this project trained, robustly, on images."""
    own = ("mnist-", "cifar-")
    return (case for case in CASES if case.network.startswith(own) and part in case.name)


def candidates(target: Target, most: int) -> Tensor:
    """Images that a short Sign attack misses and that another solves, or nearly solves."""
    missed = (~ATTACKS["Sign, CE"](target, 1000, 7).solved).nonzero().squeeze(1)
    left = target.select(missed)
    nearest = torch.maximum(*(ATTACKS[name](left, 1000, 7).margin for name in ("APGD-T", "ours")))
    order = nearest.argsort(descending=True)[:most]
    return missed[order].sort().values


def build(case: Case, options: argparse.Namespace) -> list[Instance]:
    target = Target.of(case, options.device, slice(options.first, options.first + options.images))
    rows = candidates(target, options.candidates)
    missed = ~ATTACKS["Sign, CE"](target.select(rows), SIGN_BUDGET, 0).solved
    rows = rows[missed]
    print(case.name, f"{len(rows)} of {len(missed)} candidates are missed by Sign", flush=True)
    solved_by = [""] * len(rows)
    for name, (budget, seeds) in FINDERS.items():
        for seed in seeds:
            left = torch.tensor([i for i, by in enumerate(solved_by) if not by], dtype=torch.int64)
            if not len(left):
                break
            outcome = ATTACKS[name](target.select(rows[left.to(rows.device)]), budget, seed)
            for i in left[outcome.solved.cpu()].tolist():
                solved_by[i] = f"{name}, {budget} gradients, seed {seed}"
            print(case.name, name, seed, int(outcome.solved.sum()), "solved", flush=True)
    found = [
        (options.first + int(row), by)
        for row, by in zip(rows.tolist(), solved_by, strict=True)
        if by
    ]
    return [Instance(case.name, row, by, i % 2 == 1) for i, (row, by) in enumerate(found)]


def attack(instances: list[Instance], options: argparse.Namespace) -> None:
    rows, data = [], []
    totals: dict[tuple[str, int], list[tuple[Tensor, Tensor]]] = {}
    counts: list[tuple[str, int, int]] = []
    for case in hard_cases(options.network):
        some = [instance for instance in instances if instance.case == case.name]
        if not some:
            continue
        held_out = torch.tensor([instance.held_out for instance in some])
        counts.append((case.name, len(some), int(held_out.sum())))
        images = torch.tensor([instance.image for instance in some], device=options.device)
        target = Target.of(case, options.device).select(images)
        for name in options.attacks:
            for seed in range(options.seeds):
                outcome: Outcome = ATTACKS[name](target, options.budget, seed)
                solved = outcome.solved.cpu()
                totals.setdefault((name, seed), []).append((solved, held_out))
                data.append(
                    {
                        "case": case.name,
                        "attack": name,
                        "seed": seed,
                        "solved": [i.image for i, s in zip(some, solved, strict=True) if s],
                        "missed": [i.image for i, s in zip(some, solved, strict=True) if not s],
                        "mean_gradients": outcome.gradients.float().mean().item(),
                    }
                )
                print(case.name, name, seed, f"{int(solved.sum())} of {len(solved)}", flush=True)
    for name in options.attacks:
        shares: list[list[float]] = [[], []]
        for seed in range(options.seeds):
            solved = torch.cat([s for s, _ in totals[name, seed]])
            held_out = torch.cat([h for _, h in totals[name, seed]])
            for half, share in zip((~held_out, held_out), shares, strict=True):
                share.append(100 * solved[half].float().mean().item())
        rows.append([name, *(_cell(share) for share in shares)])
    networks = "; ".join(f"{name}: {n} ({held} held out)" for name, n, held in counts)
    table = markdown(["attack", "tuning half", "held-out half"], rows) + f"\n\n{networks}"
    title = f"Hard instances solved, {options.budget} gradients for each"
    save("hard_set_results", title, table, data, options.device, options.out)


def _cell(shares: list[float]) -> str:
    mean = sum(shares) / len(shares)
    return f"{mean:.1f} % ({min(shares):.1f} to {max(shares):.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["build", "run"])
    parser.add_argument("--network", default="", help="names of networks must contain this")
    parser.add_argument("--first", type=int, default=1600, help="build: none before was tuned on")
    parser.add_argument("--images", type=int, default=8400, help="build: images to look at")
    parser.add_argument("--candidates", type=int, default=200, help="build: of each network")
    parser.add_argument("--attacks", nargs="+", default=["APGD-T", "AutoAttack", "ours"])
    parser.add_argument("--budget", type=int, default=50_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--set", type=Path, default=RESULTS / "hard_set.json")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.command == "run":
        known = [Instance(**entry) for entry in json.loads(options.set.read_text())["instances"]]
        attack(known, options)
        return
    found: list[Instance] = []
    for case in hard_cases(options.network):
        found += build(case, options)
        payload = {"machine": machine(options.device), "instances": [vars(i) for i in found]}
        options.set.write_text(json.dumps(payload, indent=1) + "\n")
        print(len(found), "instances in", options.set, flush=True)


if __name__ == "__main__":
    main()
