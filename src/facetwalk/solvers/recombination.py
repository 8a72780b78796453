"""Restarts that learn from each other: a population for each problem, bred from its elites."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from facetwalk.batching import map_tensors, per_row
from facetwalk.objectives import Guided, Objective
from facetwalk.solvers.activation_descent import ActivationDescent
from facetwalk.solvers.base import Method, Rows, Solver, Task
from facetwalk.types import InputError

_FIRST = ActivationDescent(steps=50)
_INNER = ActivationDescent(steps=25, step_size=0.5)

_BREEDING, _MIXING = 1, 2
"""Streams of random numbers."""


@dataclass(frozen=True)
class Elites:
    """The best points of each population so far, best first."""

    family: Tensor
    """int64 `(F,)`, rising."""
    x: Tensor
    """`(F, E, *shape)`."""
    value: Tensor
    """`(F, E)`."""

    def of(self, family: Tensor) -> Elites:
        """Those of some of the families."""
        at = torch.searchsorted(self.family, family)
        return Elites(family, self.x[at], self.value[at])


@dataclass(frozen=True, kw_only=True)
class Recombination(Method):
    """A population improves in generations; children mix the coordinates of two elites.

    Works with any solver and in any space. Of a child's coordinates a few are drawn anew, and
    a few members are new random points. Where the objective knows alternatives (a classifier's
    losses), members climb different ones; the objective itself decides who is an elite.
    """

    population: int = 5
    """Members of a generation."""
    generations: int = 7
    """Rounds, the first one included."""
    first: Solver = _FIRST
    """Improves the first generation, from random points."""
    inner: Solver = _INNER
    """Improves children: a smaller step keeps what they inherit."""
    polish: Solver | None = None
    """Improves the best elites, as they are, at the end."""
    elites: int = 8
    """So many of the best points so far may be parents."""
    redrawn: float = 0.01
    """Share of a child's coordinates that are drawn anew: one of few, at least."""
    fresh: float = 0.2
    """Share of the members that are new random points."""
    mixed: bool = True
    """Whether members climb alternatives of the objective, where it knows any."""

    def __post_init__(self) -> None:
        for name in ("first", "inner", "polish"):
            solver = getattr(self, name)
            if not isinstance(solver, Solver) and not (name == "polish" and solver is None):
                raise InputError(
                    f"Recombination.{name} must be a solver of one round, such as Sign(); "
                    f"it is {solver!r}"
                )
        for name in ("population", "generations", "elites"):
            if getattr(self, name) < 1:
                raise InputError(
                    f"Recombination.{name} must be at least 1; it is {getattr(self, name)}"
                )
        for name in ("redrawn", "fresh"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(
                    f"Recombination.{name} must be a share in [0, 1]; it is {getattr(self, name)}"
                )

    @property
    def rounds(self) -> tuple[Solver, ...]:
        last = () if self.polish is None else (self.polish,)
        return (self.first, *[self.inner] * (self.generations - 1), *last)

    @property
    def steps(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return sum(solver.steps for solver in self.rounds)

    def begin(
        self, task: Task, rows: Rows, memory: Elites | None, number: int
    ) -> tuple[Task, Tensor]:
        if memory is None:
            x = rows.best_x
        elif number == self.generations:
            return task, self._best(memory.of(self._families(rows)))
        else:
            x = self._children(task, memory.of(self._families(rows)), number)
        return (self._with_alternatives(task, x, number) if self.mixed else task), x

    def _families(self, rows: Rows) -> Tensor:
        return rows.family[:: self.population].contiguous()

    def learn(self, memory: Elites | None, rows: Rows) -> Elites:
        family = self._families(rows)
        x = rows.best_x.unflatten(0, (-1, self.population))
        value = rows.best.unflatten(0, (-1, self.population))
        if memory is not None:
            known = memory.of(family)
            x, value = torch.cat([known.x, x], 1), torch.cat([known.value, value], 1)
        best, order = value.topk(min(self.elites, value.shape[1]), dim=1)
        picked = order.reshape(*order.shape, *[1] * (x.ndim - 2)).expand(-1, -1, *x.shape[2:])
        return Elites(family, x.gather(1, picked), best)

    def _best(self, elites: Elites) -> Tensor:
        """The elites themselves as members, the best ones twice where they are too few."""
        count = elites.value.shape[1]
        rank = torch.arange(self.population, device=elites.x.device) % count
        return elites.x[:, rank].flatten(0, 1)

    def _children(self, task: Task, elites: Elites, number: int) -> Tensor:
        """New members, `(F * population, *shape)`."""
        random = task.random.fold(_BREEDING, number)
        shape, dtype = elites.x.shape[2:], elites.x.dtype
        families, count = elites.value.shape
        family = torch.arange(families, device=elites.x.device)
        family = family.repeat_interleave(self.population)
        one = (random.fold(0).uniform(()) * count).long()
        other = (one + 1 + (random.fold(1).uniform(()) * (count - 1)).long()) % count
        from_one = random.fold(2).uniform(shape) < 0.5
        child = torch.where(from_one, elites.x[family, one], elites.x[family, other])
        new = task.space.sample(random.fold(3)).to(dtype)
        share = max(self.redrawn, 1 / math.prod(shape)) if self.redrawn else 0.0
        redrawn = random.fold(4).uniform(shape) < share
        redrawn |= per_row(random.fold(5).uniform(()) < self.fresh, child)
        return task.space.project(torch.where(redrawn, new, child))

    def _with_alternatives(self, task: Task, x: Tensor, number: int) -> Task:
        """The task in which each member climbs an alternative, by what its leader sees."""
        objective = task.objective
        if type(objective).alternative is Objective.alternative:
            return task
        task.passes.forward += 1
        of_leaders = task.leaders().outputs(x[:: self.population])
        outputs = map_tensors(lambda y: y.repeat_interleave(self.population, 0), of_leaders)
        guide = objective.alternative(outputs, task.random.fold(_MIXING, number))
        return replace(task, objective=Guided(objective, guide))
