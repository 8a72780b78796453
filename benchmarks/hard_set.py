"""Bar 3: instances that Sign with 100 x 100 restarts misses and that something solves.

`build` looks for them on the robust networks of this project and writes `hard_set.json`. Of each
network those with the lower image numbers may be used for tuning and the others are held out.
`run` attacks them and reports both halves.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from attacks import ATTACKS
from networks import CASES, Case
from outcome import Target
from report import RESULTS, earlier, made_by, markdown, origin, write
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
    return [Instance(case.name, row, by, 2 * i >= len(found)) for i, (row, by) in enumerate(found)]


def attack(instances: list[Instance], options: argparse.Namespace) -> list[dict]:
    """Which instances each attack solves, with each seed."""
    entries = []
    for case in hard_cases(options.network):
        some = [instance.image for instance in instances if instance.case == case.name]
        if not some or not options.attacks:
            continue
        images = torch.tensor(some, device=options.device)
        target = Target.of(case, options.device).select(images)
        for name in options.attacks:
            for seed in range(options.seeds):
                outcome = ATTACKS[name](target, options.budget, seed)
                solved = outcome.solved.cpu()
                entries.append(
                    {
                        "case": case.name,
                        "attack": name,
                        "seed": seed,
                        "solved": images.cpu()[solved].tolist(),
                        "mean_gradients": outcome.gradients.float().mean().item(),
                        **origin(options.device),
                    }
                )
                print(case.name, name, seed, f"{int(solved.sum())} of {len(some)}", flush=True)
    return entries


def table(instances: list[Instance], entries: list[dict]) -> str:
    """Shares of the instances that are solved: by half, and by network."""
    cases = sorted({entry["case"] for entry in entries})
    instances = [instance for instance in instances if instance.case in cases]
    groups = {
        "tuning half": [i for i in instances if not i.held_out],
        "held-out half": [i for i in instances if i.held_out],
        "first found by others": [i for i in instances if not i.solved_by.startswith("ours")],
        **{case: [i for i in instances if i.case == case] for case in cases},
    }
    headers = ["attack", "gradients on average"]
    headers += [f"{name} ({len(group)})" for name, group in groups.items()]
    rows = []
    for attack in sorted({entry["attack"] for entry in entries}):
        own = [entry for entry in entries if entry["attack"] == attack]
        spent = sum(e["mean_gradients"] for e in own) / len(own)
        cells = [_cell([_share(own, s, g) for s in _seeds(own)]) for g in groups.values()]
        rows.append([attack, round(spent), *cells])
    return markdown(headers, rows)


def _seeds(entries: list[dict]) -> list[int]:
    return sorted({entry["seed"] for entry in entries})


def _share(entries: list[dict], seed: int, group: list[Instance]) -> float:
    """Percent of the group that are solved."""
    solved = {(e["case"], image) for e in entries if e["seed"] == seed for image in e["solved"]}
    return 100 * sum((i.case, i.image) in solved for i in group) / len(group)


def _cell(shares: list[float]) -> str:
    mean = sum(shares) / len(shares)
    spread = f"{min(shares):.0f} to {max(shares):.0f}" if len(shares) > 1 else "one seed"
    return f"{mean:.1f} % ({spread})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["build", "run"])
    parser.add_argument("--network", default="", help="names of networks must contain this")
    parser.add_argument("--first", type=int, default=1600, help="build: none before was tuned on")
    parser.add_argument("--images", type=int, default=8400, help="build: images to look at")
    parser.add_argument("--candidates", type=int, default=200, help="build: of each network")
    parser.add_argument("--attacks", nargs="*", default=["APGD-T", "AutoAttack", "ours"])
    parser.add_argument("--budget", type=int, default=50_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--set", type=Path, default=RESULTS / "hard_set.json")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--name", default="hard_set_results", help="of the files of a run")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument(
        "--add", nargs="*", type=Path, default=[], help="JSON files of runs to put beside this one"
    )
    options = parser.parse_args()
    known = []
    if options.set.exists():
        known = [Instance(**entry) for entry in json.loads(options.set.read_text())["instances"]]
    if options.command == "run":
        entries = earlier(options.add) + attack(known, options)
        parts = [
            f"# Hard instances solved, {options.budget} gradients for each",
            made_by(entries),
            table(known, entries),
        ]
        write(options.name, "\n\n".join(parts) + "\n", {"results": entries}, options.out)
        print(parts[-1])
        return
    found = [instance for instance in known if options.network not in instance.case]
    for case in hard_cases(options.network):
        found += build(case, options)
        payload = {**origin(options.device), "instances": [vars(i) for i in found]}
        options.set.write_text(json.dumps(payload, indent=1) + "\n")
        print(len(found), "instances in", options.set, flush=True)


if __name__ == "__main__":
    main()
