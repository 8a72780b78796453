"""The solvers under the names that the command line uses."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from facetwalk import InputError
from facetwalk.solvers import BY_NAME, Auto, Method, Recombination, Solver

AnySolver = Solver | Recombination | Auto

METHODS: dict[str, type[AnySolver]] = {"auto": Auto, "recombination": Recombination, **BY_NAME}


def solver_class(name: str) -> type[AnySolver]:
    """The solver of this name."""
    if name not in METHODS:
        raise InputError(f"no solver is named {name!r}; there are {', '.join(METHODS)}")
    return METHODS[name]


def name_of(solver: Method | Auto) -> str:
    """The name of a solver of `METHODS`."""
    (name,) = (name for name, kind in METHODS.items() if kind is type(solver))
    return name


def settings_of(solver: Method | Auto) -> dict[str, Any]:
    """Every field of a solver."""
    assert is_dataclass(solver)
    return {field.name: getattr(solver, field.name) for field in fields(solver)}
