"""Populations on a small network, seen as they were bred."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

import facetwalk as fw
from facetwalk.objectives import Output
from facetwalk.solvers import Recombination, Solver
from facetwalk.solvers.gd import Point
from facetwalk.zoo import random_network

NET = random_network((8, 20, 15, 4), 1).double()


def centers(count: int) -> Tensor:
    generator = torch.Generator().manual_seed(4)
    return torch.rand(count, 8, generator=generator, dtype=torch.float64)


def spaces(count: int) -> dict[str, fw.Space]:
    middle = centers(count)
    ball = fw.L2Ball(middle, torch.linspace(0.2, 0.8, count, dtype=torch.float64))
    return {
        "box": fw.Box(middle - 1, middle + 0.5, shape=(8,)),
        "linf": fw.LinfBall(middle, eps=0.3, bounds=(0, 1)),
        "l2": fw.L2Ball(middle, eps=0.5, bounds=(0, 1)),
        "l1": fw.L1Ball(middle, eps=0.5, bounds=(0, 1)),
        "intersection": fw.Intersection(ball, fw.L1Ball(middle + 0.01, eps=0.6)),
    }


@dataclass(frozen=True, kw_only=True)
class Still(Solver):
    """Does not move, so that a generation is seen as it was bred."""

    steps: int = 1

    def init(self, task: Any, x: Tensor) -> Point:
        return Point(x)

    def step(self, task: Any, state: Point, t: int) -> tuple[Point, Tensor]:
        return state, task.value(state.x)


def bred(space: fw.Space, objective=None, **settings) -> tuple[list[Tensor], list[Tensor], Any]:
    """Points and values of each generation, `(problems, population, ...)`, and the result."""
    solver = Recombination(first=Still(), inner=Still(), **settings)
    points, values = [], []

    def watch(step: fw.Step) -> None:
        points.append(step.x.unflatten(0, (-1, solver.population)))
        values.append(step.value.unflatten(0, (-1, solver.population)))

    problem = fw.Problem(NET, objective or Output(0), space)
    return points, values, fw.maximize(problem, solver=solver, callback=watch, seed=7)
