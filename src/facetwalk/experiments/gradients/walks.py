"""The ascents whose steps are looked at."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from facetwalk.batching import unit_rows
from facetwalk.experiments.random_networks import paper_gd
from facetwalk.loop import Step
from facetwalk.maximize import maximize
from facetwalk.problem import Problem
from facetwalk.solvers import Gd, Sign
from facetwalk.spaces import Space

NAMES = ("GD", "sign ascent")
_SIGN_STEP = 0.5
"""Of the radius, at first; it falls to 0."""


@dataclass(frozen=True)
class Method:
    """A way to climb, with as many steps as are looked at."""

    name: str
    solver: Gd | Sign

    def step(self, space: Space, gradient: Tensor, t: int) -> Tensor:
        """What the t-th step adds to a point, before projection, for gradients `(B, *shape)`.

        >>> from facetwalk.spaces import Box
        >>> gd, sign = methods(10)
        >>> gradient = torch.tensor([[3.0, 4.0]])
        >>> [each.step(Box(-1, 1, shape=(2,)), gradient, 5).tolist() for each in (gd, sign)]
        [[[0.30000001192092896, 0.4000000059604645]], [[0.25, 0.25]]]
        """
        if isinstance(self.solver, Sign):
            return self.solver.numbers(t)[0] * space.ascent(gradient)
        return self.solver.step_size * space.radius * unit_rows(gradient)


def methods(steps: int) -> tuple[Method, Method]:
    """The paper's GD, steps of 0.5 radii along unit gradients, and sign ascent."""
    sign = Sign(steps=steps, step_size=_SIGN_STEP, decay="linear")
    return Method(NAMES[0], paper_gd(steps)), Method(NAMES[1], sign)


@dataclass(frozen=True)
class Walk:
    """Where B problems were before each of T steps."""

    x: Tensor
    """`(T, B, *shape)`."""
    value: Tensor
    """`(T, B)`."""


def walk(problem: Problem, method: Method) -> Walk:
    """One run for each problem, from a random point; problem b has the seed b."""
    seen: list[Step] = []
    maximize(problem, solver=method.solver, x0="sample", callback=seen.append)
    return Walk(torch.stack([step.x for step in seen]), torch.stack([step.value for step in seen]))
