"""Solvers whose steps differ in a few numbers only, so that one recording serves them all."""

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
    """A step is `prepare` and `renew`, where there is something to do for them, and `move`."""

    @abstractmethod
    def numbers(self, t: int) -> tuple[float, ...]:
        """What changes from step to step; steps with as many numbers do the same operations."""

    @property
    def steady(self) -> dict[int, float]:
        """Those of the numbers, by their places, that are the same in all steps."""
        return {}

    @property
    @abstractmethod
    def operations(self) -> Hashable:
        """What `move` depends on beside its arguments; if equal, a recording serves both."""

    def prepare(self, task: Task, state: Any, t: int) -> Any:
        """The state after what some steps do first; the same object where there is nothing."""
        return state

    def renews(self, task: Task, t: int) -> tuple[str, ...]:
        """What `renew` does for the t-th step, in words."""
        return ()

    def renew(self, task: Task, state: Any, what: tuple[str, ...], *numbers: Number) -> Any:
        """The state with what is measured or drawn anew, by the same operations for the same
        words; nothing here may wait for a GPU."""
        return state

    @abstractmethod
    def move(self, task: Task, state: Any, *numbers: Number) -> tuple[Any, Tensor]:
        """The next state, and the scores `(B,)` at `state.x`; nothing here may wait for a GPU."""

    def step(self, task: Task, state: Any, t: int) -> tuple[Any, Tensor]:
        state, numbers = self.prepare(task, state, t), self.numbers(t)
        what = self.renews(task, t)
        if what:
            state = self.renew(task, state, what, *numbers)
        return self.move(task, state, *numbers)
