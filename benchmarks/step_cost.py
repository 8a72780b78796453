"""Bar 2: what one ADR-GD step costs, in Sign steps of the same run, on the paper's MNIST network.

Two forward and two backward passes make 2 the limit. Both methods take the same number of steps
in turns, setup included, and the ratio is that of the medians.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import torch
from report import RESULTS, data_folder, markdown, save
from torch import nn

import facetwalk as fw
from facetwalk.solvers import AdrGd, Sign, Solver
from facetwalk.zoo import MnistCnn

STEPS = 200


def seconds_per_step(model: nn.Module, solver: Solver, batch: int, device: str) -> float:
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(batch, 1, 28, 28, generator=generator).to(device)
    labels = (torch.arange(batch) % 10).to(device)
    space = fw.LinfBall(images, eps=0.2, bounds=(0, 1))
    problem = fw.Problem(model, fw.objectives.CrossEntropy(labels), space)
    if device == "cuda":
        torch.cuda.synchronize()
    began = time.perf_counter()
    fw.maximize(problem, solver=solver)
    if device == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - began) / solver.steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batches", nargs="+", type=int, default=[64, 1])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    weights = torch.load(
        data_folder() / "classifiers" / "mnist_cnn_pgd.pt", "cpu", weights_only=True
    )
    solvers = {
        "Sign": Sign(steps=STEPS),
        "ADR-GD, paper": AdrGd(steps=STEPS, normals="probed"),
        "ADR-GD, released": AdrGd(**{**vars(AdrGd.preset("released-attack")), "steps": STEPS}),
    }
    rows, data = [], []
    model = MnistCnn()
    model.load_state_dict(weights)
    model = model.to(options.device).eval()
    for batch in options.batches:
        times: dict[str, list[float]] = {name: [] for name in solvers}
        for repeat in range(options.repeats + 1):
            for name, solver in solvers.items():
                taken = seconds_per_step(model, solver, batch, options.device)
                if repeat:
                    times[name].append(taken)
        medians = {name: statistics.median(taken) for name, taken in times.items()}
        for name, median in medians.items():
            ratio = median / medians["Sign"]
            absolute = f"{1e3 * median:.2f} ms" if options.device == "cuda" else "-"
            rows.append([name, batch, f"{ratio:.2f}", absolute])
            data.append(
                {
                    "method": name,
                    "batch": batch,
                    "ratio": ratio,
                    "seconds_per_step": times[name],
                    "solver": repr(solvers[name]),
                }
            )
    table = markdown(["method", "batch", "Sign steps", "per step"], rows)
    title = f"Cost of one step on mnist_cnn_pgd.pt, {options.device}"
    save(f"step_cost_{options.device}", title, table, data, options.device, options.out)


if __name__ == "__main__":
    main()
