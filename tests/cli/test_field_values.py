import math
from dataclasses import fields
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facetwalk.cli.field_values import (
    changed_settings,
    described,
    field_types,
    parsed,
    printed,
)
from facetwalk.cli.solver_names import METHODS, AnySolver
from facetwalk.solvers import ActivationDescent, AdrGd, Recombination, Sign, Solver
from facetwalk.types import InputError


def holds_a_solver(kind: Any) -> bool:
    return kind is Solver or Solver in get_args(kind)


TYPES = {
    described(kind): kind
    for solver in METHODS.values()
    for kind in (field_types(solver)[field.name] for field in fields(solver))
    if not holds_a_solver(kind)
}
"""The type of every field of every solver, under what is said about it."""
NAMES = st.text("abcdefgh.#0123", min_size=1)


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Any value that a field of this type can have."""
    if get_origin(kind) is Literal:
        return st.sampled_from(get_args(kind))
    if get_origin(kind) is tuple:
        return st.tuples(*map(values, get_args(kind)))
    if str in get_args(kind):
        return NAMES | st.lists(NAMES, min_size=1).map(tuple)
    if NoneType in get_args(kind):
        return st.one_of(map(values, get_args(kind)))
    if kind is NoneType:
        return st.none()
    return {int: st.integers(), bool: st.booleans(), float: st.floats(allow_nan=False)}[kind]


@pytest.mark.parametrize("kind", TYPES.values(), ids=TYPES.keys())
@given(data=st.data())
def test_what_is_printed_is_parsed_back(kind, data):
    value = data.draw(values(kind))
    again = parsed(printed(value), kind)
    assert again == value
    assert type(again) is type(value)


@pytest.mark.parametrize("solver", METHODS.values(), ids=METHODS.keys())
def test_defaults_are_printed_and_parsed_back(solver: type[AnySolver]):
    types = field_types(solver)
    for field in fields(solver):
        value = getattr(solver(), field.name)
        if not holds_a_solver(types[field.name]):
            assert parsed(printed(value), types[field.name]) == value


def test_a_solver_is_printed_with_its_steps_and_what_is_not_usual():
    assert printed(ActivationDescent()) == "ActivationDescent(steps=100)"
    inner = ActivationDescent(steps=50, step_size=0.5)
    assert printed(inner) == "ActivationDescent(steps=50, step_size=0.5)"


def test_the_settings_of_a_run_say_how_long_it_is_and_what_is_not_usual():
    assert changed_settings(Sign()) == ["steps=100"]
    assert changed_settings(Sign(steps=3, decay="cosine")) == ["steps=3", "decay=cosine"]
    usual = Recombination()
    method = Recombination(first=Sign(steps=7), inner=Sign(momentum=0.5), elites=3)
    assert changed_settings(method) == [
        f"population={usual.population}",
        f"generations={usual.generations}",
        "first=Sign(steps=7)",
        "inner=Sign(steps=100, momentum=0.5)",
        "elites=3",
    ]


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("7", "steps", 7),
        ("1e-3", "step_size", 0.001),
        ("3", "step_size", 3.0),
        ("false", "perturb", False),
        ("0.3,0.7", "gate_bounds", (0.3, 0.7)),
        ("-1,inf", "weight_bounds", (-1.0, math.inf)),
        ("none", "normals_every", None),
        ("25", "normals_every", 25),
        ("probed", "normals", "probed"),
        ("last", "sites", "last"),
        ("1#0,3#0", "sites", ("1#0", "3#0")),
    ],
)
def test_values_as_users_write_them(text, field, value):
    again = parsed(text, field_types(AdrGd)[field])
    assert again == value
    assert type(again) is type(value)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("7.5", "steps"),
        ("", "steps"),
        ("none", "steps"),
        ("much", "step_size"),
        ("nan", "step_size"),
        ("yes", "perturb"),
        ("0.3", "gate_bounds"),
        ("0.3,0.5,0.7", "gate_bounds"),
        ("0.3;0.7", "gate_bounds"),
        ("never", "normals_every"),
        ("Exact", "normals"),
    ],
)
def test_other_texts_are_refused(text, field):
    kind = field_types(AdrGd)[field]
    with pytest.raises(InputError) as caught:
        parsed(text, kind)
    assert described(kind) in str(caught.value)
