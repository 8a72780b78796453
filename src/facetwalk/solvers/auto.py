"""The default: splits a budget between generations of a population."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from facetwalk.solvers.activation_descent import ActivationDescent
from facetwalk.solvers.adaptive import Adam
from facetwalk.solvers.base import Method, Solver
from facetwalk.solvers.recombination import Recombination
from facetwalk.solvers.sign import Sign
from facetwalk.types import InputError

_USUAL = 1000
"""Evaluations where nothing is said."""
_FIRST_ROUND = 50
"""Steps of the first generation, at least."""
_ROUND = 25
"""Steps of the others."""
_MEMBERS = 60
"""A population of p gets p * p times so many evaluations."""
_CHILD_STEP = 0.5
_POLISH = 100
"""Steps of the polish at most: a quarter of all, where that is less."""
_POLISH_STEP = 0.02
_ALONE_BELOW = 200
"""Evaluations below which one long run is better than a population."""


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
        given = self.evaluations
        if given is not None and (not isinstance(given, int) or given < 1):
            raise InputError(f"evaluations must be a whole number, at least 1; it is {given}")
        if self.seconds is not None and not self.seconds > 0:
            raise InputError(f"seconds must be positive; it is {self.seconds}")

    def plan(self, relus: bool = True, to_the_last_digit: bool = True) -> Method:
        """What to run for so many evaluations.

        A model without `relus` gets plain sign ascent. The last rounds polish what was found,
        unless a threshold is all that is asked for.
        """
        solver: Sign = ActivationDescent() if relus else Sign()
        budget = self.evaluations or _USUAL
        if budget < _ALONE_BELOW:
            return replace(solver, steps=budget)
        population = round(math.sqrt(budget / _MEMBERS))
        steps = budget // population
        polish = None
        if to_the_last_digit:
            polish = Adam(steps=min(_POLISH, steps // 4), step_size=_POLISH_STEP)
            steps -= polish.steps
        generations = 1 + max(0, steps - _FIRST_ROUND) // _ROUND
        first: Solver = replace(solver, steps=steps - (generations - 1) * _ROUND)
        inner: Solver = replace(solver, steps=_ROUND, step_size=_CHILD_STEP)
        return Recombination(
            population=population,
            generations=generations,
            first=first,
            inner=inner,
            polish=polish,
        )
