"""Ascent with a step size for each coordinate: Adam, Adagrad, RMSprop."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from facetwalk.solvers.base import Decay, Task, decayed, require_positive
from facetwalk.solvers.scheduled import Number, ScheduledSolver

_EPSILON = 1e-12
"""Keeps a coordinate that never had a gradient from dividing by zero."""


@dataclass
class Moments:
    x: Tensor
    mean: Tensor
    square: Tensor


@dataclass(frozen=True, kw_only=True)
class _Adaptive(ScheduledSolver):
    step_size: float
    """First step, in units of the space's radius."""
    decay: Decay = "linear"
    """How the step size falls."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "step_size")

    def init(self, task: Task, x: Tensor) -> Moments:
        wide = torch.promote_types(x.dtype, torch.float32)  # squares vanish in 16 bits
        return Moments(x, torch.zeros_like(x, dtype=wide), torch.zeros_like(x, dtype=wide))

    @property
    def operations(self) -> Hashable:
        return replace(self, steps=1, step_size=1.0, decay="constant")

    def numbers(self, t: int) -> tuple[float, ...]:
        return (self.step_size * decayed(self.decay, t, self.steps),)

    def move(self, task: Task, state: Any, *numbers: Number) -> tuple[Moments, Tensor]:
        size, *biases = numbers
        value, _, gradient = task.evaluate(state.x)
        gradient = gradient.to(state.square.dtype)
        mean, square, direction = self._direction(state, gradient, *biases)
        moved = state.x + size * task.space.radius * direction
        return Moments(task.space.project(moved.to(state.x.dtype)), mean, square), value

    @abstractmethod
    def _direction(
        self, state: Moments, gradient: Tensor, *biases: Number
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The next mean and square, and the direction to move in."""


@dataclass(frozen=True, kw_only=True)
class Adam(_Adaptive):
    """Adam (Kingma and Ba, 2015)."""

    step_size: float = 0.1
    mean_decay: float = 0.9
    """The paper's beta_1."""
    square_decay: float = 0.999
    """The paper's beta_2."""

    def numbers(self, t: int) -> tuple[float, ...]:
        """The step size, and by how much the mean and the square fall short so early."""
        biases = (1 - decay ** (t + 1) for decay in (self.mean_decay, self.square_decay))
        return (*super().numbers(t), *biases)

    def _direction(
        self, state: Moments, gradient: Tensor, *biases: Number
    ) -> tuple[Tensor, Tensor, Tensor]:
        mean = self.mean_decay * state.mean + (1 - self.mean_decay) * gradient
        square = self.square_decay * state.square + (1 - self.square_decay) * gradient.square()
        of_mean, of_square = biases
        return mean, square, mean / of_mean / ((square / of_square).sqrt() + _EPSILON)


@dataclass(frozen=True, kw_only=True)
class Adagrad(_Adaptive):
    """Adagrad (Duchi et al., 2011)."""

    step_size: float = 0.5

    def _direction(
        self, state: Moments, gradient: Tensor, *biases: Number
    ) -> tuple[Tensor, Tensor, Tensor]:
        square = state.square + gradient.square()
        return state.mean, square, gradient / (square.sqrt() + _EPSILON)


@dataclass(frozen=True, kw_only=True)
class RmsProp(_Adaptive):
    """RMSprop (Tieleman and Hinton, 2012)."""

    step_size: float = 0.1
    square_decay: float = 0.99
    """How slowly the mean square forgets."""

    def _direction(
        self, state: Moments, gradient: Tensor, *biases: Number
    ) -> tuple[Tensor, Tensor, Tensor]:
        square = self.square_decay * state.square + (1 - self.square_decay) * gradient.square()
        return state.mean, square, gradient / (square.sqrt() + _EPSILON)
