"""Bar 1: the best value that each method finds on random networks, one start from 0.

Weights and biases are uniform(-1, 1), inputs in [-1, 1]^n: the paper's ablation. Every method
has the same space, objective and best-so-far rule. Networks are seeds 0, 1, 2, ...
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from report import RESULTS, markdown, save
from torch import Tensor

import facetwalk as fw
from facetwalk.solvers import Adagrad, Adam, AdrGd, Apgd, Gd, PerturbedGd, RmsProp, Sign, Solver
from facetwalk.zoo import MODEL_A, MODEL_B, MODEL_C, StackedNetworks, random_network

SIZES = {"A": MODEL_A, "B": MODEL_B, "C": MODEL_C}


@dataclass(frozen=True)
class Method:
    """A row of the table: a solver for a model and a number of steps, and its starts."""

    name: str
    solver: Callable[[str, int], Solver]
    starts: int = 1


def adr_gd(preset: str) -> Callable[[str, int], Solver]:
    return lambda model, steps: _with_steps(
        AdrGd.for_experiment(f"model-{model.lower()}", preset), steps
    )


def _with_steps(solver: AdrGd, steps: int) -> AdrGd:
    return replace(solver, steps=steps, normals="exact", normals_every=1)


METHODS = [
    Method(
        "GD, l2, 0.5",
        lambda m, n: Gd(steps=n, step_size=0.5, normalization="l2", decay="constant"),
    ),
    Method("Adam, 0.1", lambda m, n: Adam(steps=n, step_size=0.1, decay="constant")),
    Method("Adagrad, 0.5", lambda m, n: Adagrad(steps=n, step_size=0.5, decay="constant")),
    Method("RMSprop, 0.1", lambda m, n: RmsProp(steps=n, step_size=0.1, decay="constant")),
    Method(
        "Perturbed GD, l2, 0.5",
        lambda m, n: PerturbedGd(steps=n, step_size=0.5, normalization="l2", decay="constant"),
    ),
    Method("ADR-GD, paper", adr_gd("paper")),
    Method("ADR-GD, released", adr_gd("released")),
    Method("GD, default", lambda m, n: Gd(steps=n)),
    Method("Adam, default", lambda m, n: Adam(steps=n)),
    Method("Sign, 0.5", lambda m, n: Sign(steps=n, step_size=0.5)),
    Method("APGD", lambda m, n: Apgd(steps=n)),
    Method("Sign, 0.5, 10 random starts", lambda m, n: Sign(steps=n // 10, step_size=0.5), 10),
    Method("Sign, default, 10 random starts", lambda m, n: Sign(steps=n // 10), 10),
    Method("APGD, 10 random starts", lambda m, n: Apgd(steps=n // 10), 10),
]


def solve(method: Method, model: str, networks: int, steps: int, device: str) -> fw.Result:
    stack = StackedNetworks([random_network(SIZES[model], seed) for seed in range(networks)])
    space = fw.Box(-1, 1, shape=(SIZES[model][0],))
    problem = fw.Problem(stack.to(device), fw.objectives.Output(0), space)
    return fw.maximize(
        problem,
        solver=method.solver(model, steps),
        starts=method.starts,
        x0="sample" if method.starts > 1 else "center",
    )


def mean_and_error(values: Tensor) -> tuple[float, float]:
    return values.mean().item(), (values.std() / len(values) ** 0.5).item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default="AC")
    parser.add_argument("--networks", type=int, default=64)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--only", help="names of methods must contain this")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    rows, data = [], []
    for method in METHODS:
        if options.only and options.only not in method.name:
            continue
        cells = []
        for model in options.models:
            result = solve(method, model, options.networks, options.steps, options.device)
            mean, error = mean_and_error(result.value)
            cells.append(
                f"{mean:,.2f} ± {error:,.2f}" if mean < 1000 else f"{mean:,.0f} ± {error:,.0f}"
            )
            data.append(
                {
                    "method": method.name,
                    "model": model,
                    "mean": mean,
                    "standard_error": error,
                    "values": result.value.tolist(),
                    "backward": int(result.evaluations.backward[0]),
                    "probe": int(result.evaluations.probe[0]),
                    "seconds": result.seconds,
                    "solver": repr(result.solver),
                }
            )
            print(method.name, model, cells[-1], f"{result.seconds:.1f} s", flush=True)
        evaluations = result.evaluations
        rows.append([method.name, *cells, int(evaluations.backward[0]), int(evaluations.probe[0])])
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
