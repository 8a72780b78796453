"""The methods that walk, all with as many gradients and from the same starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from facetwalk.experiments.landscape.networks import problem_of, square
from facetwalk.experiments.random_networks import Outputs, adr_gd, paper_gd
from facetwalk.loop import Callback, Step
from facetwalk.maximize import maximize
from facetwalk.problem import Result
from facetwalk.solvers import ActivationDescent, Auto, Sign, Solver
from facetwalk.streams import Streams

GRADIENTS = 200
"""Of each walk."""
LONG, SHORT = 0.5, 0.05
"""Lengths of steps: the appendix's for random networks, and one that is short in a square."""


@dataclass(frozen=True)
class Method:
    """A row of the tables."""

    name: str
    solver: Solver | Auto
    starts: int = 1
    """The first is given, the others are random."""


def _gd(step: float) -> Method:
    return Method(f"GD, steps of {step}", replace(paper_gd(GRADIENTS), step_size=step))


def _adr_gd(preset: str, step: float) -> Method:
    solver = replace(adr_gd("A", GRADIENTS, preset), step_size=step)
    return Method(f"ADR-GD ({preset}), steps of {step}", solver)


GD, ADR_GD = _gd(SHORT), _adr_gd("released", SHORT)
ONE_RUN = Method("ours, one run", ActivationDescent(steps=GRADIENTS))
DEFAULT = Method("ours, default", Auto(evaluations=GRADIENTS))
METHODS = (
    GD,
    _gd(LONG),
    _adr_gd("paper", SHORT),
    _adr_gd("paper", LONG),
    ADR_GD,
    _adr_gd("released", LONG),
    Method("sign ascent, one run", Sign(steps=GRADIENTS)),
    Method("sign ascent, 4 starts", Sign(steps=GRADIENTS // 4), starts=4),
    ONE_RUN,
    DEFAULT,
)
"""ADR-GD has the appendix's parameters for Model A. Sign ascent takes the steps of ours without the
activation-descent gradient. Our default is a population, which has several starts too."""


def start_points(count: int) -> Tensor:
    """Random points of the square, always the same ones: `(count, 2)`."""
    numbers = torch.arange(count)
    return square().sample(Streams.from_seeds(numbers, torch.zeros_like(numbers)))


def run_all(
    networks: Sequence[nn.Sequential],
    points: Tensor,
    method: Method,
    callback: Callback | None = None,
) -> Result:
    """All networks side by side; `points` are the starts on the first, on the second, ..."""
    outputs = Outputs.of(networks, len(points) // len(networks))
    return maximize(
        outputs.problem,
        solver=method.solver,
        x0=points,
        starts=method.starts,
        callback=callback,
    )


def path(network: nn.Sequential, start: Tensor, method: Method, number: int) -> list[list[float]]:
    """The points of the walk that has this number in `run_all`, walked once more alone."""
    seen: list[Step] = []
    maximize(
        problem_of(network),
        solver=method.solver,
        x0=start[None],
        seed=number,
        callback=seen.append,
    )
    return torch.cat([step.x for step in seen]).tolist()
