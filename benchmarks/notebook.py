"""The network of the notebook of ADR-GD's authors: what they report, and what our solvers do there.

They report where GD ends and the best value of ADR-GD. The first says whether the network and the
steps are theirs, the second whether ADR-GD is.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from report import RESULTS, markdown, save

import facetwalk as fw
from facetwalk.experiments.random_networks import Outputs, Run, adr_gd, paper_gd
from facetwalk.zoo import notebook_network

GD, ADR_GD = 19.9599, 24.8431
"""What they report."""
STEPS = 3000
SEEDS = 16


def gd_values() -> list[float]:
    """The value at each step of GD from 0."""
    values: list[float] = []
    problem = fw.Problem(notebook_network(), fw.objectives.Output(0), fw.Box(-1, 1, shape=(10,)))
    fw.maximize(
        problem,
        solver=paper_gd(STEPS),
        x0="center",
        callback=lambda step: values.append(step.value.item()),
    )
    return values


def adr_gd_values(preset: str) -> list[float]:
    """The best value of each seed."""
    gradients = STEPS * fw.solvers.AdrGd.gradients_per_step
    outputs = Outputs.of([notebook_network()], seeds=SEEDS)
    return [row[0] for row in outputs.solve(Run(adr_gd("A", gradients, preset)))["values"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the page")
    folder = parser.parse_args().out
    gd = gd_values()
    found = {preset: adr_gd_values(preset) for preset in ("released", "paper")}
    headers = ["method", "reported", "ours", f"seeds that reach it, of {SEEDS}"]
    rows: list[list[object]] = [
        ["GD, the last value", f"{GD:.4f}", f"{gd[-1]:.4f}", ""],
        ["GD, the best value", "", f"{max(gd):.4f}", ""],
    ]
    rows += [
        [
            f"ADR-GD ({preset}), the best value",
            f"{ADR_GD:.4f}",
            f"{min(values):.4f} to {max(values):.4f}",
            sum(value >= ADR_GD for value in values),
        ]
        for preset, values in found.items()
    ]
    title = f"The network of the authors' notebook, {STEPS} steps, in float64"
    save("notebook", title, markdown(headers, rows), {"gd": gd[-1], **found}, "cpu", folder)


if __name__ == "__main__":
    main()
