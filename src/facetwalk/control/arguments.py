"""What attacks and refinements are given, checked when they are made."""

from __future__ import annotations

import math
from typing import Any, get_args

from facetwalk.types import InputError


def require_choice(name: str, value: object, choices: Any) -> None:
    """Raise `InputError` for what is none of the words of a `Literal`."""
    known = get_args(choices)
    if value not in known:
        raise InputError(f"{name} must be one of {', '.join(known)}; it is {value!r}")


def require_distance(name: str, value: Any, *, finite: bool) -> None:
    """Raise `InputError` for what is no number, or a negative one.

    >>> require_distance("radius", -1, finite=False)
    Traceback (most recent call last):
    facetwalk.types.InputError: radius must be a number, not negative; it is -1
    """
    try:
        number = math.nan if isinstance(value, str) else float(value)
    except (TypeError, ValueError, RuntimeError):
        number = math.nan
    if not number >= 0 or (finite and math.isinf(number)):
        kind = "finite number" if finite else "number"
        raise InputError(f"{name} must be a {kind}, not negative; it is {value!r}")
