"""Solvers whose steps differ in a few numbers only, so that a GPU can replay one recording."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from facetwalk.solvers.base import Solver, Task

Number = float | Tensor
"""A number, or a tensor without dimensions that holds it on the device."""


@dataclass(frozen=True, kw_only=True)
class ScheduledSolver(Solver):
    """A step is `prepare`, where a step has something to prepare, and then `move`."""

    @abstractmethod
    def numbers(self, t: int) -> tuple[float, ...]:
        """What changes from step to step; steps with as many numbers do the same operations."""

    @property
    @abstractmethod
    def operations(self) -> Hashable:
        """What `move` depends on beside its arguments; if equal, a recording serves both."""

    def prepare(self, task: Task, state: Any, t: int) -> Any:
        """The state after what some steps do first; the same object where there is nothing."""
        return state

    @abstractmethod
    def move(self, task: Task, state: Any, *numbers: Number) -> tuple[Any, Tensor]:
        """The next state, and the scores `(B,)` at `state.x`; nothing here may wait for a GPU."""

    def step(self, task: Task, state: Any, t: int) -> tuple[Any, Tensor]:
        return self.move(task, self.prepare(task, state, t), *self.numbers(t))
