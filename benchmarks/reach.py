"""How few evaluations the default needs for what AutoAttack standard finds.

Budgets grow until the default's mean success over the seeds is at least AutoAttack's. Evaluations
are rows that pass through the network, forward alone or forward and back, on average over images.
What AutoAttack finds is taken from the pages of `classifiers.py`.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

import torch
from attacks import ATTACKS
from networks import CASES
from outcome import Outcome, Target
from report import RESULTS, earlier, made_by, markdown, origin, write

BUDGETS = (20, 40, 60, 80, 100, 150, 200, 300, 500, 600, 650, 700, 1000, 2000)
PAGES = [RESULTS / "bar1_1000.json", RESULTS / "bar2_1000.json"]
HEADERS = [
    "network",
    "AutoAttack",
    "its evaluations",
    "ours",
    "its evaluations",
    "gradients at most",
    "one part in",
]


def of_autoattack(entry: dict) -> dict[str, float]:
    return {
        "success": statistics.mean(entry["success"]),
        "evaluations": statistics.mean(entry["mean_forwards"]),
    }


def of_ours(outcomes: list[Outcome]) -> dict[str, float]:
    return {
        "success": statistics.mean(100 * one.solved.float().mean().item() for one in outcomes),
        "evaluations": statistics.mean(one.forwards.float().mean().item() for one in outcomes),
    }


def least_budget(target: Target, success: float, seeds: int) -> dict[str, float]:
    """What the default does with the smallest budget that suffices, or with the largest of all."""
    ours: dict[str, float] = {}
    for budget in BUDGETS:
        found = [ATTACKS["ours"](target, budget, seed) for seed in range(seeds)]
        ours = {"budget": budget, **of_ours(found)}
        if ours["success"] >= success:
            break
    return ours


def row(entry: dict) -> list[object]:
    theirs, ours = entry["AutoAttack"], entry["ours"]
    reached = ours["success"] >= theirs["success"]
    return [
        entry["case"],
        f"{theirs['success']:.1f} %",
        round(theirs["evaluations"]),
        f"{ours['success']:.1f} %",
        round(ours["evaluations"]),
        ours["budget"],
        f"{theirs['evaluations'] / ours['evaluations']:.0f}" if reached else "not reached",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", nargs="*", default=[""], help="parts of their names")
    parser.add_argument("--pages", nargs="+", type=Path, default=PAGES, help="with AutoAttack")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--name", default="reach", help="of the files that are written")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--add", nargs="*", type=Path, default=[], help="JSON files of other runs")
    options = parser.parse_args()
    known = {entry["case"]: entry for entry in earlier(options.add)}
    theirs = {e["case"]: e for e in earlier(options.pages) if e["attack"] == "AutoAttack"}
    for case in CASES:
        if case.name not in theirs or not any(part in case.name for part in options.networks):
            continue
        images = theirs[case.name]["images"]
        target = Target.of(case, options.device, slice(*images))
        goal = of_autoattack(theirs[case.name])
        known[case.name] = {
            "case": case.name,
            "images": images,
            **origin(options.device),
            "AutoAttack": goal,
            "ours": least_budget(target, goal["success"], options.seeds),
        }
        print(*row(known[case.name]), sep=" | ", flush=True)
    names = [case.name for case in CASES]
    entries = sorted(known.values(), key=lambda entry: names.index(entry["case"]))
    title = "# Evaluations for what AutoAttack standard finds"
    table = markdown(HEADERS, [row(entry) for entry in entries])
    text = "\n\n".join([title, made_by(entries), table]) + "\n"
    write(options.name, text, {"results": entries}, options.out)
    print(text)


if __name__ == "__main__":
    main()
