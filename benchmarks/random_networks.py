"""Bar 1: the best value that each method finds on random networks, one start from 0.

Weights and biases are uniform(-1, 1), inputs in [-1, 1]^n: the paper's ablation. Every method
has the same space, objective and best-so-far rule. Networks are seeds 0, 1, 2, ...
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, stdev

import torch
from report import RESULTS, markdown, save

from facetwalk.experiments.random_networks import (
    SIZES,
    Outputs,
    Run,
    adr_gd,
    paper_gd,
    random_networks,
    written,
)
from facetwalk.solvers import Adagrad, Adam, AdrGd, Apgd, Gd, PerturbedGd, RmsProp, Sign


def preset_of_adr_gd(preset: str) -> Callable[[str, int], Run]:
    return lambda model, steps: Run(adr_gd(model, steps * AdrGd.gradients_per_step, preset))


METHODS: dict[str, Callable[[str, int], Run]] = {
    "GD, l2, 0.5": lambda m, n: Run(paper_gd(n)),
    "Adam, 0.1": lambda m, n: Run(Adam(steps=n, step_size=0.1, decay="constant")),
    "Adagrad, 0.5": lambda m, n: Run(Adagrad(steps=n, step_size=0.5, decay="constant")),
    "RMSprop, 0.1": lambda m, n: Run(RmsProp(steps=n, step_size=0.1, decay="constant")),
    "Perturbed GD, l2, 0.5": lambda m, n: Run(
        PerturbedGd(steps=n, step_size=0.5, normalization="l2", decay="constant")
    ),
    "ADR-GD, paper": preset_of_adr_gd("paper"),
    "ADR-GD, released": preset_of_adr_gd("released"),
    "GD, default": lambda m, n: Run(Gd(steps=n)),
    "Adam, default": lambda m, n: Run(Adam(steps=n)),
    "Sign, 0.5": lambda m, n: Run(Sign(steps=n, step_size=0.5)),
    "APGD": lambda m, n: Run(Apgd(steps=n)),
    "Sign, 0.5, 10 random starts": lambda m, n: Run(Sign(steps=n // 10, step_size=0.5), 10),
    "Sign, default, 10 random starts": lambda m, n: Run(Sign(steps=n // 10), 10),
    "APGD, 10 random starts": lambda m, n: Run(Apgd(steps=n // 10), 10),
}
"""From a model and a number of steps to what is run."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default="AC", help=f"of {''.join(SIZES)}")
    parser.add_argument("--networks", type=int, default=64)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--only", help="names of methods must contain this")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    rows, data = [], []
    for name, run in METHODS.items():
        if options.only and options.only not in name:
            continue
        cells = []
        for model in options.models:
            outputs = Outputs.of(random_networks(model, options.networks), device=options.device)
            found = outputs.solve(run(model, options.steps))
            (values,) = found["values"]
            mean, error = fmean(values), stdev(values) / len(values) ** 0.5
            cells.append(written(mean, error))
            about = {"method": name, "model": model, "mean": mean, "standard_error": error}
            data.append({**about, **found, "values": values})
            print(name, model, cells[-1], f"{found['seconds']:.1f} s", flush=True)
        rows.append([name, *cells, int(found["gradients"]), int(found["probes"])])
    headers = ["method", *(f"Model {m}" for m in options.models), "gradients", "probes"]
    title = f"Best value on {options.networks} random networks, {options.steps} steps"
    save(
        f"random_networks_{options.models}_{options.networks}",
        title,
        markdown(headers, rows),
        data,
        options.device,
        options.out,
    )


if __name__ == "__main__":
    main()
