"""Bar 4: how far below the best value ever found each method stops on random networks.

The networks are those of `random_networks.py`. `results/best_known.json` holds the best value
that any method of any run has found on each; a run that finds better ones writes them there.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from pathlib import Path

import torch
from random_networks import SIZES
from report import RESULTS, markdown, save
from torch import Tensor

import facetwalk as fw
from facetwalk.solvers import Apgd, Auto, Method, Sign
from facetwalk.zoo import StackedNetworks, random_network

Plan = Callable[[int], tuple[Method | Auto, int]]
"""From a number of gradients to a solver and its starts."""

METHODS: dict[str, Plan] = {
    "Sign, restarts of 300": lambda n: (Sign(steps=300), n // 300),
    "APGD, restarts of 300": lambda n: (Apgd(steps=300), n // 300),
    "APGD, restarts of 150": lambda n: (Apgd(steps=150), n // 150),
    "ours": lambda n: (Auto(evaluations=n), 1),
}


def values(model: str, numbers: range, budget: int, plan: Plan, seed: int, device: str) -> Tensor:
    stack = StackedNetworks([random_network(SIZES[model], number) for number in numbers])
    space = fw.Box(-1, 1, shape=(SIZES[model][0],))
    problem = fw.Problem(stack.to(device), fw.objectives.Output(0), space)
    solver, starts = plan(budget)
    seed = 1_000_003 * seed
    return fw.maximize(problem, solver=solver, starts=starts, x0="sample", seed=seed).value.cpu()


class BestKnown:
    """The best value of each network, by model and number, kept in a file."""

    def __init__(self, path: Path) -> None:
        self.values: dict[str, dict[str, float]] = (
            json.loads(path.read_text()) if path.exists() else {}
        )

    def of(self, model: str, numbers: range) -> Tensor:
        known = self.values.get(model, {})
        return torch.tensor([known.get(str(number), -torch.inf) for number in numbers])

    def learn(self, model: str, numbers: range, found: Tensor) -> None:
        best = torch.maximum(self.of(model, numbers), found).tolist()
        known = self.values.setdefault(model, {})
        known.update(zip(map(str, numbers), best, strict=True))

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(self.values, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default="ABC")
    parser.add_argument("--first", type=int, default=1000, help="1000 to 1255 were not tuned on")
    parser.add_argument("--networks", type=int, default=64)
    parser.add_argument("--budgets", nargs="+", type=int, default=[3000, 30000])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--known", type=Path, default=RESULTS / "best_known.json")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    best = BestKnown(options.known)
    numbers = range(options.first, options.first + options.networks)
    runs: dict[tuple[str, int, str], list[Tensor]] = {}
    for model in options.models:
        for budget in options.budgets:
            for name, plan in METHODS.items():
                found = [
                    values(model, numbers, budget, plan, seed, options.device)
                    for seed in range(options.seeds)
                ]
                runs[model, budget, name] = found
                for one in found:
                    best.learn(model, numbers, one)
                print(model, budget, name, [one.mean().item() for one in found], flush=True)
    rows, data = [], []
    for (model, budget, name), found in runs.items():
        limit = best.of(model, numbers)
        shares = [100 * (one.sum() / limit.sum()).item() for one in found]
        reached = [(one >= limit - 1e-5 * limit.abs()).float().mean().item() for one in found]
        mean = statistics.mean(one.mean().item() for one in found)
        rows.append(
            [
                f"{model}, {budget}",
                name,
                f"{mean:,.3f}",
                f"{statistics.mean(shares):.3f} %",
                f"{min(shares):.3f} to {max(shares):.3f}",
                f"{100 * statistics.mean(reached):.0f} %",
            ]
        )
        entry = {"model": model, "budget": budget, "method": name, "mean": mean}
        data.append({**entry, "shares": shares, "reached": reached})
    headers = [
        "model, gradients",
        "method",
        "mean value",
        "share of the best known",
        "seeds",
        "reach it",
    ]
    title = f"Share of the best value known, {options.networks} random networks"
    save("best_known_shares", title, markdown(headers, rows), data, options.device, options.out)
    best.save(options.out / "best_known.json")


if __name__ == "__main__":
    main()
