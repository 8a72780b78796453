"""The values of solvers' fields as text: printed for tables, parsed from `--set`."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from facetwalk import InputError
from facetwalk.solvers import Solver

_WORDS = {"true": True, "false": False}


def field_types(solver: type[Solver]) -> dict[str, Any]:
    """The type of each field of a solver."""
    return get_type_hints(solver)


def printed(value: object) -> str:
    """A field's value, written as `parsed` reads it.

    >>> printed((0.0, 1.0)), printed(None), printed(True)
    ('0.0,1.0', 'none', 'true')
    """
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
    return "true | false" if kind is bool else str(kind.__name__)


def parsed(text: str, kind: Any) -> Any:
    """The value of a field of this type; `InputError` where the text is none.

    >>> parsed("0.3,0.7", tuple[float, float]), parsed("none", int | None)
    ((0.3, 0.7), None)
    """
    try:
        return _parsed(text, kind)
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
    if kind is bool:
        if text not in _WORDS:
            raise ValueError(text)
        return _WORDS[text]
    value = kind(text)
    if value != value:  # NaN
        raise ValueError(text)
    return value
