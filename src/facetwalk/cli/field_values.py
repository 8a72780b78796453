"""The values of solvers' fields as text: printed for tables, parsed from `--set`."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from facetwalk import InputError
from facetwalk.cli.solver_names import AnySolver, settings_of
from facetwalk.solvers import BY_NAME, Auto, Method, Solver

_WORDS = {"true": True, "false": False}
_ALWAYS_SHOWN = ("steps", "population", "generations", "first", "inner")
"""Fields that say how long a solver runs."""


def field_types(solver: type[AnySolver]) -> dict[str, Any]:
    """The type of each field of a solver."""
    return get_type_hints(solver)


def changed_settings(solver: Method | Auto) -> list[str]:
    """How long the solver runs, and every setting that is not its default, as `field=value`."""
    settings, usual = settings_of(solver), settings_of(type(solver)())
    changed = [n for n in settings if n in _ALWAYS_SHOWN or settings[n] != usual[n]]
    return [f"{name}={printed(settings[name])}" for name in changed]


def printed(value: object) -> str:
    """A field's value, written as `parsed` reads it; a solver with its settings.

    >>> printed((0.0, 1.0)), printed(None), printed(True)
    ('0.0,1.0', 'none', 'true')
    """
    if isinstance(value, Solver):
        return f"{type(value).__name__}({', '.join(changed_settings(value))})"
    if isinstance(value, (tuple, list)):
        return ",".join(map(printed, value)) + ("," if len(value) == 1 else "")
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return str(value)


def described(kind: Any) -> str:
    """What to write for a field of this type."""
    if get_origin(kind) is Literal:
        return " | ".join(get_args(kind))
    if get_origin(kind) is tuple:
        return ",".join(map(described, get_args(kind)))
    if get_origin(kind) in (Union, UnionType):
        if str in get_args(kind):
            return "all | last | name,name,..."
        return " | ".join(map(described, get_args(kind)))
    if kind is NoneType:
        return printed(None)
    if kind is Solver:
        return "a solver"
    return "true | false" if kind is bool else str(kind.__name__)


def parsed(text: str, kind: Any) -> Any:
    """The value of a field of this type; `InputError` where the text is none.

    The text for a solver is its name.

    >>> parsed("0.3,0.7", tuple[float, float]), parsed("none", int | None)
    ((0.3, 0.7), None)
    """
    try:
        return _parsed(text, kind)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{text!r} is not of the form {described(kind)}") from error


def _parsed(text: str, kind: Any) -> Any:
    parts = text.removesuffix(",").split(",")
    if get_origin(kind) is Literal:
        return get_args(kind)[get_args(kind).index(text)]
    if get_origin(kind) is tuple:
        return tuple(_parsed(part, k) for part, k in zip(parts, get_args(kind), strict=True))
    if get_origin(kind) in (Union, UnionType):
        if str in get_args(kind):
            return tuple(parts) if "," in text else text
        if text == printed(None):
            return None
        (kind,) = set(get_args(kind)) - {NoneType}
        return _parsed(text, kind)
    if kind is Solver:
        if text not in BY_NAME:
            raise InputError(f"{text!r} is not one of {', '.join(BY_NAME)}")
        return BY_NAME[text]()
    if kind is bool:
        if text not in _WORDS:
            raise ValueError(text)
        return _WORDS[text]
    value = kind(text)
    if value != value:  # NaN
        raise ValueError(text)
    return value
