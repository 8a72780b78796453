"""Makes a solver from the options of `maximize`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from facetwalk import InputError
from facetwalk.cli.field_values import field_types, parsed, printed
from facetwalk.solvers import BY_NAME, AdrGd, Solver


@dataclass(frozen=True)
class SolverOptions:
    """What a user said about the solver; None is what they left open."""

    name: str
    preset: str | None = None
    experiment: str | None = None
    steps: int | None = None
    settings: Sequence[str] = ()
    """Texts `field=value`."""


def make_solver(options: SolverOptions) -> Solver:
    """The solver: preset, then experiment, then steps and settings."""
    start = _start(options)
    changes = dict(_setting(start, text) for text in options.settings)
    if len(changes) < len(options.settings):
        raise InputError("--set gives a field twice: give each once")
    if options.steps is not None:
        if "steps" in changes:
            raise InputError("steps are given twice: leave out --steps or --set steps=...")
        changes |= dict([_setting(start, f"steps={options.steps}")])
    return replace(start, **changes)


def solver_class(name: str) -> type[Solver]:
    """The solver of this name."""
    if name not in BY_NAME:
        raise InputError(f"no solver is named {name!r}; there are {', '.join(BY_NAME)}")
    return BY_NAME[name]


def changed_settings(solver: Solver) -> str:
    """One line with the steps and every setting that is not the solver's default."""
    usual = type(solver)()
    names = [field.name for field in fields(solver)]
    changed = [n for n in names if n == "steps" or getattr(solver, n) != getattr(usual, n)]
    return " ".join(f"{name}={printed(getattr(solver, name))}" for name in changed)


def _start(options: SolverOptions) -> Solver:
    kind = solver_class(options.name)
    if options.preset is None and options.experiment is None:
        return kind()
    if kind is not AdrGd:
        raise InputError(f"--preset and --experiment are for adr-gd, not for {options.name}")
    preset = options.preset or "paper"
    if options.experiment is None:
        return AdrGd.preset(preset)
    return AdrGd.for_experiment(options.experiment, preset)


def _setting(solver: Solver, text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"--set {text} must have the form field=value")
    settable = [field.name for field in fields(solver) if field.init]
    if name not in settable:
        raise InputError(
            f"{type(solver).__name__} has no field {name!r} to set; "
            f"there are {', '.join(settable) or 'none'}"
        )
    try:
        return name, parsed(value, field_types(type(solver))[name])
    except InputError as error:
        raise InputError(f"{name} cannot be set: {error}") from error
