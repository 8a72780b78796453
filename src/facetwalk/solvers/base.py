"""What a solver is, and what it may ask of the problem it works on."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cache
from numbers import Real
from typing import (
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Protocol,
    get_args,
    get_origin,
    get_type_hints,
)

import torch
from torch import Tensor, nn

from facetwalk.batching import map_tensors
from facetwalk.gradients import gradient_of
from facetwalk.models import model_of
from facetwalk.objectives import Guided, Objective
from facetwalk.sites import Sites, audit, discover
from facetwalk.spaces import Space
from facetwalk.streams import Streams
from facetwalk.types import InputError, whole_number

Decay = Literal["constant", "linear", "cosine"]

_AUDIT_POINTS = 8


@dataclass
class Passes:
    """How often the rows of a task went through the network."""

    forward: int = 0
    backward: int = 0
    probe: int = 0
    """Passes that measure normals."""

    def add(self, other: Passes) -> None:
        self.forward += other.forward
        self.backward += other.backward
        self.probe += other.probe

    def since(self, earlier: Passes) -> Passes:
        """What was counted after `earlier`."""
        return Passes(
            self.forward - earlier.forward,
            self.backward - earlier.backward,
            self.probe - earlier.probe,
        )

    def set(self, other: Passes) -> None:
        self.forward, self.backward, self.probe = other.forward, other.backward, other.probe


class Evaluation(NamedTuple):
    """What one pass forward and back tells of a point."""

    value: Tensor
    """The objective, `(B,)`: what the loop keeps the best of."""
    loss: Tensor
    """What the gradient is that of: the objective, or its guide; `(B,)`."""
    gradient: Tensor
    """`(B, *shape)`."""


@dataclass
class Task:
    """Rows of problems that a solver improves side by side; row b of every tensor is row b's."""

    model: nn.Module
    objective: Objective
    space: Space
    random: Streams
    mates: int = 1
    """So many rows after one another are members of one population."""
    low_precision: bool = False
    """Whether the model runs in bfloat16, where torch's autocast sees fit."""
    passes: Passes = field(default_factory=Passes)
    found: list[tuple[Sites, bool]] = field(default_factory=list)
    """What `sites` has found."""

    def sites(self, x: Tensor) -> tuple[Sites, bool]:
        """The model's sites, and whether it is affine with frozen gates; looked for once."""
        if not self.found:
            sites = discover(self.model, x)
            self.found.append((sites, self._is_affine(sites)))
        sites, affine = self.found[0]
        return sites.on(self.model), affine

    def _is_affine(self, sites: Sites) -> bool:
        """Audit the first row's network between random points of its space; warns if not."""
        numbers = torch.arange(_AUDIT_POINTS, device=self.random.keys.device)
        first = self.select(torch.zeros_like(numbers))
        random = Streams.from_seeds(numbers, numbers)
        ends = (first.space.sample(random.fold(i)) for i in range(2))
        return audit(sites.on(first.model), *ends) is None

    def outputs(self, x: Tensor, forward: Callable[[Tensor], Any] | None = None) -> Any:
        """The model's outputs at `x`, or those of `forward` in its place."""
        forward = forward or self.model
        if not self.low_precision:
            return forward(x.clone())
        with torch.autocast(x.device.type, torch.bfloat16):
            low = forward(x.clone())
        return map_tensors(lambda y: y.to(x.dtype) if y.is_floating_point() else y, low)

    def value(self, x: Tensor) -> Tensor:
        """Scores `(B,)` at `x`."""
        self.passes.forward += 1
        with torch.no_grad():
            return self.objective(self.outputs(x))

    def evaluate(self, x: Tensor, forward: Callable[[Tensor], Any] | None = None) -> Evaluation:
        """Scores at `x` and the gradient to follow; `forward` stands for the model where given."""
        self.passes.forward += 1
        self.passes.backward += 1
        outputs, loss, gradient = gradient_of(
            lambda leaf: self.outputs(leaf, forward), self.guide, x
        )
        return Evaluation(self.score(outputs, loss), loss, gradient)

    @property
    def guide(self) -> Objective:
        """What the solver climbs: the objective, or its guide."""
        return self.objective.guide if isinstance(self.objective, Guided) else self.objective

    def score(self, outputs: Any, loss: Tensor) -> Tensor:
        """The objective `(B,)` of outputs whose guide's value `loss` is known."""
        if not isinstance(self.objective, Guided):
            return loss
        with torch.no_grad():
            return self.objective(map_tensors(Tensor.detach, outputs))

    def leaders(self) -> Task:
        """The task of the first member of each population."""
        if self.mates == 1:
            return self
        count = len(self.random.keys)
        rows = torch.arange(0, count, self.mates, device=self.random.keys.device)
        return replace(self.select(rows), mates=1)

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


class Round(NamedTuple):
    """A round that is over."""

    solver: Solver
    state: Any
    """The one that it ended in."""
    steps: range
    """Which of all steps it took."""


class Rows(Protocol):
    """What the loop shows of the rows at work after a round."""

    family: Tensor
    """Which population each row belongs to, int64 `(N,)`, rising."""
    best_x: Tensor
    """The best point of each row in this round, `(N, *shape)`."""
    best: Tensor
    """Its value, `(N,)`."""


class Method(ABC):
    """A way to search, as rounds of solvers: what `maximize` runs."""

    steps: int
    """Steps that each row takes in all rounds together."""
    population: int = 1
    """Rows of one start, which learn from each other."""
    closing: int = 1
    """So many of the last rounds take place also where time runs out before."""

    @property
    @abstractmethod
    def rounds(self) -> tuple[Solver, ...]:
        """The solver of each round."""

    @abstractmethod
    def begin(self, task: Task, rows: Rows, memory: Any, number: int) -> tuple[Task, Tensor]:
        """What the rows do in a round, and where they start, `(N, *shape)`."""

    @abstractmethod
    def learn(self, memory: Any, rows: Rows, number: int) -> Any:
        """What to remember once a round is over; `memory` is None after the first."""

    @property
    def evaluations(self) -> int:
        """Gradient evaluations of one start."""
        steps = sum(solver.steps * solver.gradients_per_step for solver in self.rounds)
        return self.population * steps


@dataclass(frozen=True, kw_only=True)
class Solver(Method):
    """A method of one round, and its settings. Frozen: a configuration is a value.

    The loop in `maximize` calls `init` once and `step` for t = 0, 1, ..., `steps` - 1, and keeps
    the best point; a solver only moves.
    """

    steps: int = 100
    """How many steps to take."""

    gradients_per_step: ClassVar[int] = 1
    """Backward passes of one step, for comparisons at equal cost."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.steps < 1:
            raise InputError(f"steps must be at least 1; it is {self.steps}")

    @property
    def rounds(self) -> tuple[Solver, ...]:
        return (self,)

    def begin(self, task: Task, rows: Rows, memory: Any, number: int) -> tuple[Task, Tensor]:
        return task, rows.best_x

    def learn(self, memory: Any, rows: Rows, number: int) -> None:
        return None

    @abstractmethod
    def init(self, task: Task, x: Tensor) -> Any:
        """The state at the starting points `x`, `(B, *shape)`."""

    def again(self, task: Task, x: Tensor, before: Round) -> Any:
        """The state at `x` in a later round; `before` is the one before it."""
        return self.init(task, x)

    @abstractmethod
    def step(self, task: Task, state: Any, t: int) -> tuple[Any, Tensor]:
        """Evaluate at `state.x` and move on: the next state, and the scores `(B,)` there."""


def check_fields(method: Any) -> None:
    """Raise `InputError` unless the numbers among a method's fields are numbers, and its words are
    among those that are known. Whole numbers of other libraries become ints."""
    for name, hint in _fields(type(method)):
        value, full_name = getattr(method, name), f"{type(method).__name__}.{name}"
        if hint is int:
            object.__setattr__(method, name, whole_number(full_name, value))
        elif hint is float and not (isinstance(value, Real) and math.isfinite(value)):
            raise InputError(f"{full_name} must be a finite number; it is {value!r}")
        elif get_origin(hint) is Literal and value not in get_args(hint):
            words = ", ".join(get_args(hint))
            raise InputError(f"{full_name} must be one of {words}; it is {value!r}")


@cache
def _fields(method: type) -> list[tuple[str, Any]]:
    """The fields of a method and their types."""
    hints = get_type_hints(method)
    return [(each.name, hints[each.name]) for each in fields(method)]


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
