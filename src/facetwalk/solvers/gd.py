"""Gradient ascent, raw or normalised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from facetwalk.batching import unit_rows
from facetwalk.solvers.base import Decay, Solver, Task, decayed, require_positive

Normalization = Literal["none", "l2", "rms"]


@dataclass
class Point:
    """The state of a solver without memory."""

    x: Tensor


def normalized(gradient: Tensor, normalization: Normalization) -> Tensor:
    """Each row of `gradient` divided by its L2 norm or root mean square; zero stays zero."""
    if normalization == "none":
        return gradient
    unit = unit_rows(gradient)
    return unit * gradient[0].numel() ** 0.5 if normalization == "rms" else unit


@dataclass(frozen=True, kw_only=True)
class GradientSteps(Solver):
    """What gradient ascent and its perturbed form share: how long a step is."""

    step_size: float = 0.5
    """First step, in units of the space's radius."""
    normalization: Normalization = "rms"
    """`none`: the raw gradient; `l2`: unit length; `rms`: unit root mean square, so that the
    step of a coordinate does not shrink with the dimension."""
    decay: Decay = "linear"
    """How the step size falls."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "step_size")

    def move(self, task: Task, gradient: Tensor, t: int) -> Tensor:
        """The t-th step along `gradient`, before projection."""
        size = self.step_size * decayed(self.decay, t, self.steps) * task.space.radius
        return size * normalized(gradient, self.normalization)


@dataclass(frozen=True, kw_only=True)
class Gd(GradientSteps):
    """Projected gradient ascent.

    The paper's GD is `Gd(step_size=0.5, normalization="l2", decay="constant")` on [-1, 1]^n.
    """

    def init(self, task: Task, x: Tensor) -> Point:
        return Point(x)

    def step(self, task: Task, state: Point, t: int) -> tuple[Point, Tensor]:
        value, _, gradient = task.evaluate(state.x)
        return Point(task.space.project(state.x + self.move(task, gradient, t))), value
