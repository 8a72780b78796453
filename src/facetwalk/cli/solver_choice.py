"""Makes a solver from the options of `maximize`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from facetwalk import InputError
from facetwalk.cli.field_values import field_types, parsed, printed
from facetwalk.cli.solver_names import AnySolver, solver_class
from facetwalk.solvers import AdrGd, Auto, Solver


@dataclass(frozen=True)
class SolverOptions:
    """What a user said about the solver; None is what they left open."""

    name: str = "auto"
    preset: str | None = None
    experiment: str | None = None
    steps: int | None = None
    evaluations: int | None = None
    settings: Sequence[str] = ()
    """Texts `field=value`, where a field may be that of a solver within: `inner.steps=25`."""


def make_solver(options: SolverOptions) -> AnySolver:
    """The solver: preset, then experiment, then steps, evaluations and settings."""
    start = _start(options)
    settings = [_name_and_text(setting) for setting in options.settings]
    if len(dict(settings)) < len(settings):
        raise InputError("--set gives a field twice: give each once")
    for name, value in (("steps", options.steps), ("evaluations", options.evaluations)):
        if value is None:
            continue
        if name in dict(settings):
            raise InputError(f"{name} are given twice: leave out --{name} or --set {name}=...")
        settings.append((name, str(value)))
    return _with_settings(start, settings)


def _start(options: SolverOptions) -> AnySolver:
    kind = solver_class(options.name)
    _check_budget(options, kind)
    if options.preset is None and options.experiment is None:
        return kind()
    if kind is not AdrGd:
        raise InputError(f"--preset and --experiment are for adr-gd, not for {options.name}")
    preset = options.preset or "paper"
    if options.experiment is None:
        return AdrGd.preset(preset)
    return AdrGd.for_experiment(options.experiment, preset)


def _check_budget(options: SolverOptions, kind: type[AnySolver]) -> None:
    if kind is Auto and options.steps is not None:
        raise InputError(
            "auto plans its own steps: give --evaluations or --seconds instead of --steps, or "
            "name another solver with --solver"
        )
    if kind is not Auto and options.evaluations is not None:
        raise InputError(
            f"--evaluations is the budget of auto, and the settings of {options.name} say how "
            "long it runs: leave out --evaluations or --solver"
        )


def _name_and_text(setting: str) -> tuple[str, str]:
    name, equals, text = setting.partition("=")
    if not equals:
        raise InputError(f"--set {setting} must have the form field=value")
    return name, text


def _with_settings(solver: Any, settings: Sequence[tuple[str, str]]) -> Any:
    """`solver` with some fields changed; `inner.steps` is the field `steps` of its `inner`."""
    changes: dict[str, Any] = {}
    of_inner: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for name, text in settings:
        outer, dot, rest = name.partition(".")
        if dot:
            of_inner[outer].append((rest, text))
        else:
            changes[name] = _value(solver, name, text)
    for outer, inner_settings in of_inner.items():
        inner = changes.get(outer, getattr(solver, outer, None))
        if not isinstance(inner, Solver):
            raise InputError(f"{type(solver).__name__} has no solver {outer!r} whose fields to set")
        changes[outer] = _with_settings(inner, inner_settings)
    return replace(solver, **changes)


def _value(solver: AnySolver, name: str, text: str) -> Any:
    kind, settable = type(solver).__name__, {field.name: field.init for field in fields(solver)}
    if name not in settable:
        names = [other for other, free in settable.items() if free]
        raise InputError(
            f"{kind} has no field {name!r} to set; there are {', '.join(names) or 'none'}"
        )
    if not settable[name]:
        value = printed(getattr(solver, name))
        raise InputError(f"{name} of {kind} is always {value}: leave it out")
    try:
        return parsed(text, field_types(type(solver))[name])
    except InputError as error:
        raise InputError(f"{name} cannot be set: {error}") from error
