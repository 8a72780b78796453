"""The default: splits a budget between generations of a population."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Real

from facetwalk.solvers.activation_descent import ActivationDescent
from facetwalk.solvers.adaptive import Adam
from facetwalk.solvers.base import Method, Solver
from facetwalk.solvers.recombination import Recombination
from facetwalk.solvers.sign import Sign
from facetwalk.types import InputError, whole_number

_USUAL = 1000
"""Evaluations where nothing is said."""
_MEMBERS = 60
"""A population of p gets about p * p times so many evaluations."""
_FEWEST, _PAIR = 4, 2
"""Members of a small population, and of one that has hardly any evaluations."""
_SHORTEST = 10
"""Steps of a round, at least."""
_MANY_INPUTS, _SHORTEST_OF_MANY = 64, 20
"""With so many inputs a climb to the last digit takes longer."""
_NEAR = 50
"""With fewer evaluations than this there is no better start than one that is given."""
_NARROW = 0.1
"""Of the kernel's width, to the last digit in L2 and L1 balls: it has to be as wide as it is there
for classifiers, and is too wide for networks all of whose neurons see all inputs."""
_CHILD_STEP = 0.5
_LAST = 200
"""Steps of polish and finish at most: a quarter of all, where that is less."""
_POLISH_STEP, _FINISH_STEP = 0.2, 0.02
_PUSH = 50
"""Steps of the polish on the way to a threshold at most: a fifth of all, where that is less."""
_PUSH_STEP, _PUSH_MOMENTUM = 0.4, 0.75
_EXACT_FIRST = 1000
"""On the way to a threshold the first generation climbs exact gradients from so many evaluations
on, in boxes: later ones are enough to find dead neurons."""


@dataclass(frozen=True)
class _Epoch:
    """How long a population is kept before another one begins."""

    rounds: int
    growth: float
    """Steps of a round, as a multiple of the square root of the budget."""
    longest: int
    """Steps of a round, at most."""
    momentum: float


_TO_THE_LAST_DIGIT = _Epoch(rounds=5, growth=0.45, longest=50, momentum=0.5)
_TO_A_THRESHOLD = _Epoch(rounds=24, growth=0.8, longest=25, momentum=0.0)


@dataclass(frozen=True, kw_only=True)
class Auto:
    """Activation descent with recombination, laid out for a budget.

    >>> Auto(evaluations=1000).plan().population
    4
    """

    evaluations: int | None = None
    """Gradient evaluations of each problem: 1000, or what `seconds` allow."""
    seconds: float | None = None
    """How long all problems together may take."""

    def __post_init__(self) -> None:
        if self.evaluations is not None:
            given = whole_number("evaluations", self.evaluations, at_least=1)
            object.__setattr__(self, "evaluations", given)
        given = self.seconds
        if given is not None and not (isinstance(given, Real) and 0 < given < math.inf):
            raise InputError(f"seconds must be a positive number; it is {given!r}")

    def plan(
        self,
        relus: bool = True,
        to_the_last_digit: bool = True,
        inputs: int = 1,
        start_is_given: bool = False,
        alternatives: bool = False,
        shares_room: bool = False,
    ) -> Method:
        """What to run for so many evaluations.

        A model without `relus` gets plain sign ascent. The last rounds polish what was found: to
        the last digit, or so that it reaches a threshold. Where the objective has no `alternatives`
        to climb, rounds are longer if there are many `inputs`, and a small budget is spent near a
        start that is given. Where the space's coordinates share its room, all generations have the
        kernel: random points are near its centre there, and not at corners far from it. The kernel
        is narrow there where neither alternatives nor a threshold speak of a classifier.
        """
        kind = _TO_THE_LAST_DIGIT if to_the_last_digit else _TO_A_THRESHOLD
        budget = self.evaluations or _USUAL
        plain = to_the_last_digit and not alternatives
        solver = Sign(momentum=kind.momentum)
        if relus:
            solver = ActivationDescent(momentum=kind.momentum)
            if plain and shares_room:
                solver = replace(solver, width=_NARROW * solver.width)
        if plain and start_is_given and budget < _NEAR:
            return replace(solver, steps=budget, step_size=_CHILD_STEP)
        many = plain and inputs >= _MANY_INPUTS
        shortest = _SHORTEST_OF_MANY if many else _SHORTEST
        members = max(_FEWEST, round(math.sqrt(budget / _MEMBERS)))
        population = members if budget >= 2 * members * shortest else _PAIR
        if population == _PAIR and (many or budget < _PAIR * shortest):
            return replace(solver, steps=budget)
        steps = budget // population
        if to_the_last_digit:
            last = _to_the_last_digit(steps)
            start = solver
        else:
            last = _to_a_threshold(solver, steps)
            exact = relus and not shares_room and budget >= _EXACT_FIRST
            start = ActivationDescent(width=0.0) if exact else solver
        steps -= sum(each.steps for each in last)
        length = min(max(shortest, round(kind.growth * math.sqrt(budget))), kind.longest, steps)
        epoch = kind.rounds * length
        epochs = max(1, round(steps / epoch))
        generations = steps // epochs // length
        first = replace(start, steps=steps // epochs - (generations - 1) * length)
        inner = replace(solver, steps=length, step_size=_CHILD_STEP)
        return Recombination(
            population=population,
            generations=generations,
            epochs=epochs,
            first=first,
            inner=inner,
            polish=last[0] if last else None,
            finish=last[1] if len(last) > 1 else None,
        )


def _to_the_last_digit(steps: int) -> list[Solver]:
    """Two last rounds, where there are steps enough."""
    last = min(_LAST, steps // 4)
    if last < _SHORTEST:
        return []
    polish = Adam(steps=last // 2, step_size=_POLISH_STEP)
    return [polish, Adam(steps=last - last // 2, step_size=_FINISH_STEP)]


def _to_a_threshold(solver: Sign, steps: int) -> list[Solver]:
    """One last round that pushes the best points on, where there are steps enough."""
    last = min(_PUSH, steps // 5)
    if last < _SHORTEST:
        return []
    return [replace(solver, steps=last, step_size=_PUSH_STEP, momentum=_PUSH_MOMENTUM)]
