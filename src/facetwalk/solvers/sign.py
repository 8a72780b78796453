"""Steepest ascent in the geometry of the space: PGD and FGSM."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from facetwalk.batching import per_row
from facetwalk.solvers.base import Decay, Solver, Task, decayed, require_positive
from facetwalk.solvers.gd import Point
from facetwalk.solvers.scheduled import Number, ScheduledSolver


@dataclass
class MovingPoint:
    x: Tensor
    momentum: Tensor


@dataclass(frozen=True, kw_only=True)
class Sign(ScheduledSolver):
    """Projected ascent along the gradient's signs (Madry et al.'s PGD), step falling to zero.

    In L2 and L1 balls the step follows the space's own steepest direction instead of signs.
    """

    step_size: float = 2.0
    """First step, in units of the space's radius."""
    decay: Decay = "linear"
    """How the step size falls."""
    momentum: float = 0.0
    """How much of the earlier gradients' sum to keep (Dong et al., 2018)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "step_size")

    def init(self, task: Task, x: Tensor) -> MovingPoint:
        return MovingPoint(x, torch.zeros_like(x))

    @property
    def operations(self) -> Hashable:
        return type(self)

    @property
    def steady(self) -> dict[int, float]:
        return {1: self.momentum}

    def numbers(self, t: int) -> tuple[float, ...]:
        """The step size and the momentum."""
        return self.step_size * decayed(self.decay, t, self.steps), self.momentum

    def move(self, task: Task, state: Any, *numbers: Number) -> tuple[MovingPoint, Tensor]:
        value, _, gradient = task.evaluate(state.x)
        return self.follow(task, state, gradient, *numbers), value

    def follow(
        self, task: Task, state: MovingPoint, gradient: Tensor, size: Number, momentum: Number
    ) -> MovingPoint:
        """The state after a step of `size` radii along `gradient`, `(B, *shape)`."""
        before = state.momentum
        if isinstance(momentum, Tensor) or momentum:
            length = gradient.abs().flatten(1).sum(1).clamp_min(torch.finfo(gradient.dtype).tiny)
            if isinstance(momentum, Tensor):  # where it is zero the gradient stays as it is
                length.masked_fill_(momentum == 0, 1.0)
            before = gradient = momentum * before + gradient / per_row(length, gradient)
        x = task.space.project(state.x + size * task.space.ascent(gradient))
        return MovingPoint(x, before)


@dataclass(frozen=True, kw_only=True)
class Fgsm(Solver):
    """The fast gradient sign method (Goodfellow et al., 2014): one step of one radius."""

    steps: int = field(default=1, init=False)

    def init(self, task: Task, x: Tensor) -> Point:
        return Point(x)

    def step(self, task: Task, state: Point, t: int) -> tuple[Point, Tensor]:
        value, _, gradient = task.evaluate(state.x)
        return Point(task.space.project(state.x + task.space.ascent(gradient))), value
