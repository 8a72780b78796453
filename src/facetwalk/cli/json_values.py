"""Turns results into what JSON can hold."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor

from facetwalk.cli.solver_names import name_of, settings_of
from facetwalk.solvers import Auto, Method


def plain(value: Any) -> Any:
    """`value` in lists, dicts, strings and finite numbers; NaN and infinities become None.

    Of a solver, the name and the fields.

    >>> plain({"bounds": (0.0, float("inf")), "steps": 3})
    {'bounds': [0.0, None], 'steps': 3}
    """
    if isinstance(value, Tensor):
        return plain(value.tolist())
    if isinstance(value, (Method, Auto)):
        return {"name": name_of(value), "fields": plain(settings_of(value))}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return str(value)
