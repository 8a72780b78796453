"""Restarts that learn from each other: a population for each problem, bred from its elites."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from facetwalk.batching import map_tensors
from facetwalk.objectives import Guided
from facetwalk.solvers.activation_descent import ActivationDescent
from facetwalk.solvers.base import Method, Rows, Solver, Task, check_fields
from facetwalk.types import InputError

_FIRST = ActivationDescent(steps=50)
_INNER = ActivationDescent(steps=25, step_size=0.5)

_BREEDING, _REDRAWING, _EPOCH = 1, 2, 3
"""Streams of random numbers."""
_CHAMPIONS = 2
"""Elites that are remembered of an epoch that is over."""


@dataclass(frozen=True)
class Elites:
    """Good points of each population, best first."""

    x: Tensor
    """`(F, E, *shape)`."""
    value: Tensor
    """`(F, E)`."""

    def and_also(self, others: Elites, most: int) -> Elites:
        """The best of both, at most so many."""
        x, value = torch.cat([self.x, others.x], 1), torch.cat([self.value, others.value], 1)
        best, order = value.topk(min(most, value.shape[1]), dim=1)
        picked = order.reshape(*order.shape, *[1] * (x.ndim - 2)).expand(-1, -1, *x.shape[2:])
        return Elites(x.gather(1, picked), best)

    def first(self, count: int) -> Elites:
        return Elites(self.x[:, :count], self.value[:, :count])


@dataclass(frozen=True)
class Memory:
    """What is known of each family."""

    family: Tensor
    """int64 `(F,)`, rising."""
    elites: Elites
    """Of the epoch, which breed."""
    champions: Elites
    """Of epochs that are over."""

    def of(self, family: Tensor) -> Memory:
        """What is known of some of the families."""
        at = torch.searchsorted(self.family, family)
        return Memory(
            family, *(Elites(e.x[at], e.value[at]) for e in (self.elites, self.champions))
        )


@dataclass(frozen=True, kw_only=True)
class Recombination(Method):
    """A population improves in generations; children mix the coordinates of two elites.

    Works with any solver and in any space. Of a child's coordinates a few are drawn anew. Where
    the objective knows alternatives (a classifier's losses), members climb different ones; the
    objective itself decides who is an elite. A population that has found its hill stands still;
    so after an epoch another one begins, and at the end the best of all epochs are polished.
    """

    population: int = 5
    """Members of a generation."""
    generations: int = 7
    """Rounds of an epoch, the first one included."""
    epochs: int = 1
    """Populations after one another, each from random points."""
    first: Solver = _FIRST
    """Improves the first generation of an epoch, from random points."""
    inner: Solver = _INNER
    """Improves children: a smaller step keeps what they inherit."""
    polish: Solver | None = None
    """Improves the best of all epochs, as they are, at the end."""
    finish: Solver | None = None
    """Improves once more, with smaller steps: a polish moves away from a narrow peak."""
    elites: int = 8
    """So many of the epoch's best points so far may be parents."""
    redrawn: float = 0.01
    """Share of a child's coordinates that are drawn anew: one of few, at least."""
    mixed: bool = True
    """Whether members climb alternatives of the objective, where it knows any."""

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("first", "inner", "polish", "finish"):
            solver = getattr(self, name)
            left_out = solver is None and name in ("polish", "finish")
            if not isinstance(solver, Solver) and not left_out:
                raise InputError(
                    f"Recombination.{name} must be a solver of one round, such as Sign(); "
                    f"it is {solver!r}"
                )
        for name in ("population", "generations", "epochs", "elites"):
            if getattr(self, name) < 1:
                raise InputError(
                    f"Recombination.{name} must be at least 1; it is {getattr(self, name)}"
                )
        if not 0 <= self.redrawn <= 1:
            raise InputError(
                f"Recombination.redrawn must be a share in [0, 1]; it is {self.redrawn}"
            )

    @property
    def rounds(self) -> tuple[Solver, ...]:
        epoch = (self.first, *[self.inner] * (self.generations - 1))
        return (*epoch * self.epochs, *self._last)

    @property
    def _last(self) -> list[Solver]:
        return [solver for solver in (self.polish, self.finish) if solver is not None]

    @property
    def closing(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return max(1, len(self._last))

    @property
    def steps(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return sum(solver.steps for solver in self.rounds)

    def begin(
        self, task: Task, rows: Rows, memory: Memory | None, number: int
    ) -> tuple[Task, Tensor]:
        if memory is None:
            x = rows.best_x
        elif self._is_last(number):
            return task, self._best(memory.of(self._families(rows)))
        elif number % self.generations == 0:
            x = task.space.sample(task.random.fold(_EPOCH, number)).to(rows.best_x.dtype)
        else:
            x = self._children(task, memory.of(self._families(rows)).elites, number)
        return (self._with_alternatives(task, x, number) if self.mixed else task), x

    def _is_last(self, number: int) -> bool:
        """Whether a round improves the best of all epochs."""
        return number >= self.generations * self.epochs

    def _families(self, rows: Rows) -> Tensor:
        return rows.family[:: self.population].contiguous()

    def learn(self, memory: Memory | None, rows: Rows, number: int) -> Memory:
        family = self._families(rows)
        x = rows.best_x.unflatten(0, (-1, self.population))
        value = rows.best.unflatten(0, (-1, self.population))
        nobody = Elites(x[:, :0], value[:, :0])
        elites = champions = nobody
        if self._is_last(number):  # nobody is worse than before
            return Memory(family, nobody.and_also(Elites(x, value), self.population), nobody)
        if memory is not None:
            known = memory.of(family)
            elites, champions = known.elites, known.champions
            if number % self.generations == 0:
                over = elites.first(_CHAMPIONS)
                champions, elites = champions.and_also(over, self.population), nobody
        return Memory(family, elites.and_also(Elites(x, value), self.elites), champions)

    def _best(self, memory: Memory) -> Tensor:
        """The best points as members, some of them twice where they are too few."""
        best = memory.elites.and_also(memory.champions, self.population)
        rank = torch.arange(self.population, device=best.x.device) % best.value.shape[1]
        return best.x[:, rank].flatten(0, 1)

    def _children(self, task: Task, elites: Elites, number: int) -> Tensor:
        """New members, `(F * population, *shape)`."""
        shape, dtype = elites.x.shape[2:], elites.x.dtype
        families, count = elites.value.shape
        family = torch.arange(families, device=elites.x.device)
        family = family.repeat_interleave(self.population)
        lots = task.random.fold(_BREEDING, number).uniform((2 + math.prod(shape),))
        one = (lots[:, 0] * count).long()
        other = (one + 1 + (lots[:, 1] * (count - 1)).long()) % count
        share = max(self.redrawn, 1 / math.prod(shape)) if self.redrawn else 0.0
        lot = lots[:, 2:].unflatten(1, shape)
        child = torch.where(lot > (1 + share) / 2, elites.x[family, one], elites.x[family, other])
        new = task.space.sample(task.random.fold(_REDRAWING, number)).to(dtype)
        return task.space.project(torch.where(lot < share, new, child))

    def _with_alternatives(self, task: Task, x: Tensor, number: int) -> Task:
        """The task in which each member climbs an alternative, by what its leader sees."""
        objective = task.objective
        if not objective.has_alternatives:
            return task
        task.passes.forward += 1
        of_leaders = task.leaders().outputs(x[:: self.population])
        outputs = map_tensors(lambda y: y.repeat_interleave(self.population, 0), of_leaders)
        turn = torch.arange(len(x), device=x.device) % self.population + self.population * number
        guide = objective.alternative(outputs, turn)
        return replace(task, objective=Guided(objective, guide))
