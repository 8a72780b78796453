"""What a solver is, and what it may ask of the problem it works on."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, ClassVar, Literal, Protocol, get_args, get_origin, get_type_hints

import torch
from torch import Tensor, nn

from facetwalk.models import model_of
from facetwalk.objectives import Objective
from facetwalk.spaces import Space
from facetwalk.streams import Streams
from facetwalk.types import InputError

Decay = Literal["constant", "linear", "cosine"]


@dataclass
class Passes:
    """How often the rows of a task went through the network."""

    forward: int = 0
    backward: int = 0
    probe: int = 0
    """Forward-mode passes that measure normals."""


@dataclass
class Task:
    """Rows of problems that a solver improves side by side; row b of every tensor is row b's."""

    model: nn.Module
    objective: Objective
    space: Space
    random: Streams
    passes: Passes = field(default_factory=Passes)

    def value(self, x: Tensor) -> Tensor:
        """Scores `(B,)` at `x`."""
        self.passes.forward += 1
        with torch.no_grad():
            return self.objective(self.model(x.clone()))

    def value_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Scores `(B,)` at `x` and their gradients `(B, *shape)`."""
        self.passes.forward += 1
        self.passes.backward += 1
        leaf = x.detach().requires_grad_()
        with torch.enable_grad():
            value = self.objective(self.model(leaf.clone()))
            (gradient,) = torch.autograd.grad(value.sum(), leaf)
        return value.detach(), torch.nan_to_num(gradient, nan=0.0)

    def select(self, rows: Tensor) -> Task:
        """The task of some rows only; passes go on being counted together."""
        return replace(
            self,
            model=model_of(self.model, rows),
            objective=self.objective.select(rows),
            space=self.space.select(rows),
            random=Streams(self.random.keys[rows]),
        )


class State(Protocol):
    """A solver's memory: a dataclass in which every tensor has one row a problem."""

    x: Tensor


@dataclass(frozen=True, kw_only=True)
class Solver(ABC):
    """A method and its settings. Frozen: a configuration is a value.

    The loop in `maximize` calls `init` once and `step` for t = 0, 1, ..., `steps` - 1, and keeps
    the best point; a solver only moves.
    """

    steps: int = 100
    """How many steps to take."""

    gradients_per_step: ClassVar[int] = 1
    """Backward passes of one step, for comparisons at equal cost."""

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise InputError(f"steps must be at least 1; it is {self.steps}")
        for name, choices in _choices(type(self)).items():
            if getattr(self, name) not in choices:
                raise InputError(
                    f"{type(self).__name__}.{name} must be one of {', '.join(choices)}; "
                    f"it is {getattr(self, name)!r}"
                )

    @abstractmethod
    def init(self, task: Task, x: Tensor) -> Any:
        """The state at the starting points `x`, `(B, *shape)`."""

    @abstractmethod
    def step(self, task: Task, state: Any, t: int) -> tuple[Any, Tensor]:
        """Evaluate at `state.x` and move on: the next state, and the scores `(B,)` there."""


@cache
def _choices(solver: type[Solver]) -> dict[str, tuple[str, ...]]:
    """The words that each field with a closed set of them may have."""
    hints = get_type_hints(solver)
    return {name: get_args(hint) for name, hint in hints.items() if get_origin(hint) is Literal}


def decayed(decay: Decay, t: int, steps: int) -> float:
    """The factor of the t-th step size: 1 at t = 0, falling to 0 at t = steps unless constant."""
    if decay == "constant":
        return 1.0
    if decay == "linear":
        return 1 - t / steps
    return 0.5 * (1 + math.cos(math.pi * t / steps))


def require_positive(solver: Solver, *names: str) -> None:
    """Raise `InputError` unless these fields of `solver` are positive."""
    for name in names:
        if not getattr(solver, name) > 0:
            raise InputError(
                f"{type(solver).__name__}.{name} must be positive; it is {getattr(solver, name)}"
            )
