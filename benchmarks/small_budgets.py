"""What the default finds on random networks with few gradients, beside other ways to spend them.

Networks 7000, 7001, ... of the paper's Models A (10 inputs), B (10) and C (128), on which nothing
was tuned. Every method has the same box, best-so-far rule and number of gradients.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import torch
from report import RESULTS, markdown, save

from facetwalk.experiments.random_networks import SIZES, Outputs, Run, half_range
from facetwalk.solvers import ActivationDescent, Adam, Apgd, Auto, Sign
from facetwalk.zoo import random_network

FIRST = 7000
RESTART = 50
"""Steps of one restart, about."""
BUDGETS = (20, 50, 100, 150, 300, 600, 1000)


def restarted(solver: Callable[..., Sign | Apgd]) -> Callable[[int], Run]:
    def run(budget: int) -> Run:
        starts = max(1, budget // RESTART)
        return Run(solver(steps=budget // starts), starts)

    return run


METHODS: dict[str, Callable[[int], Run]] = {
    "Adam": lambda budget: Run(Adam(steps=budget)),
    "Sign": lambda budget: Run(Sign(steps=budget)),
    "Sign, restarts": restarted(Sign),
    "APGD": lambda budget: Run(Apgd(steps=budget)),
    "APGD, restarts": restarted(Apgd),
    "activation descent": lambda budget: Run(ActivationDescent(steps=budget, momentum=0.5)),
    "ours": lambda budget: Run(Auto(evaluations=budget)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", nargs=3, type=int, default=[128, 32, 16], metavar="N")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    rows, data = [], []
    for (model, sizes), count in zip(SIZES.items(), options.networks, strict=True):
        networks = [random_network(sizes, FIRST + number) for number in range(count)]
        outputs = Outputs.of(networks, options.seeds, options.device)
        found = {
            (budget, name): torch.tensor(outputs.solve(run(budget))["values"])
            for budget in BUDGETS
            for name, run in METHODS.items()
        }
        best = torch.stack([values.amax(0) for values in found.values()]).amax(0).sum()
        for budget in BUDGETS:
            shares = {name: (100 * found[budget, name].sum(1) / best).tolist() for name in METHODS}
            top = max(sum(each) for each in shares.values())
            cells = []
            for each in shares.values():
                cell = f"{sum(each) / len(each):.2f} ± {half_range(each):.2f}"
                cells.append(f"**{cell}**" if sum(each) == top else cell)
            rows.append([f"{model}, {budget}", *cells])
            data.append({"model": model, "budget": budget, "networks": count, "shares": shares})
    note = (
        "Shares in percent of the best values that any cell of a model has found, mean of "
        f"{options.seeds} seeds ± half their range; {', '.join(map(str, options.networks))} "
        "networks of Models A, B, C."
    )
    table = markdown(["model, gradients", *METHODS], rows)
    save("small_budgets", "Few gradients", f"{note}\n\n{table}", data, options.device, options.out)


if __name__ == "__main__":
    main()
