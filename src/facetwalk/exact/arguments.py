"""Numbers that callers pass."""

from __future__ import annotations

import math
from numbers import Real

from torch import Tensor

from facetwalk.types import InputError


def number(name: str, value: object) -> float:
    """`value` as a float; `InputError` where it is no number.

    >>> number("threshold", "0")
    Traceback (most recent call last):
    facetwalk.types.InputError: threshold must be a number; it is '0'
    """
    is_one = isinstance(value, Real) or (isinstance(value, Tensor) and value.numel() == 1)
    found = float(value) if is_one else math.nan  # pyright: ignore[reportArgumentType]
    if math.isnan(found):
        raise InputError(f"{name} must be a number; it is {value!r}")
    return found


def positive(name: str, value: object) -> float:
    """As `number`, of one above zero."""
    found = number(name, value)
    if not found > 0:
        raise InputError(f"{name} must be positive; it is {value}")
    return found
