"""Every entry of the op table against the torch function that it stands for."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from facetwalk.sites.interception import Interception
from facetwalk.sites.ops import OPS

OTHER = torch.linspace(2, -2, 33, dtype=torch.float64).reshape(11, 3)
PRELU = torch.tensor([-0.5, 0.1, 2.0], dtype=torch.float64)

ARGUMENTS = {
    "relu": [()],
    "clamp": [(0,), (0.5,), (-1, 2), (0, 6), (None, 1.5), (-OTHER.abs(), OTHER.abs()), (3, 3)],
    "clip": [(0,), (-1, 2)],
    "clamp_min": [(0,), (-0.5,), (OTHER,)],
    "clamp_max": [(0,), (1.5,), (OTHER,)],
    "threshold": [(0, 0), (-0.5, -0.5), (2.0, 2.0)],
    "relu6": [()],
    "hardtanh": [(-1.0, 1.0), (0.0, 2.0)],
    "hardsigmoid": [()],
    "softshrink": [(0.5,), (0.0,), (2.0,)],
    "leaky_relu": [(), (0.2,), (0.0,), (-0.5,), (3.0,)],
    "prelu": [(PRELU,), (PRELU[:1],)],
    "rrelu": [(0.1, 0.4)],
    "abs": [()],
    "absolute": [()],
    "maximum": [(OTHER,), (torch.zeros((), dtype=torch.float64),)],
    "minimum": [(OTHER,), (torch.zeros((), dtype=torch.float64),)],
    "max": [(OTHER,)],
    "min": [(OTHER,)],
}
CASES = [(name, args) for name, several in ARGUMENTS.items() for args in several]
every_case = pytest.mark.parametrize(
    ("name", "args"), CASES, ids=[f"{name}-{i}" for i, (name, _) in enumerate(CASES)]
)


def values() -> Tensor:
    """From -8 to 8 in steps of 1/2, so that every kink above is met exactly."""
    return torch.linspace(-8, 8, 33, dtype=torch.float64).reshape(11, 3)


def spellings(name: str, in_place: bool) -> list:
    return [f for f, op in OPS.items() if op.name == name and op.in_place == in_place]


def intercepted(function, h: Tensor) -> tuple[Tensor, int]:
    """What `function` gives when each hinge is a ReLU, and how many hinges it has."""
    mode = Interception(lambda number, z: torch.relu(z))
    with mode:
        output = function(h)
    return output, mode.count


def test_every_entry_has_a_case():
    assert {op.name for op in OPS.values()} == set(ARGUMENTS)


@every_case
def test_a_function_is_its_affine_part_plus_hinges(name, args):
    functions = spellings(name, in_place=False)
    assert functions
    for function in functions:
        h = values()
        output, count = intercepted(lambda h, f=function: f(h, *args), h)
        assert count > 0
        assert torch.equal(h, values())
        torch.testing.assert_close(output, function(values(), *args), rtol=0, atol=1e-14)


@every_case
def test_an_in_place_spelling_changes_its_operand(name, args):
    for function in spellings(name, in_place=True):
        h, expected = values(), function(values(), *args)
        output, count = intercepted(lambda h, f=function: f(h, *args), h)
        assert count > 0
        assert output is h
        torch.testing.assert_close(h, expected, rtol=0, atol=1e-14)


IN_PLACE_ARGUMENT = {
    "relu": lambda h: F.relu(h, inplace=True),
    "relu, by position": lambda h: F.relu(h, True),
    "relu6": lambda h: F.relu6(h, inplace=True),
    "hardtanh": lambda h: F.hardtanh(h, inplace=True),
    "hardsigmoid": lambda h: F.hardsigmoid(h, inplace=True),
    "leaky_relu": lambda h: F.leaky_relu(h, 0.1, inplace=True),
    "threshold": lambda h: F.threshold(h, 0.0, 0.0, inplace=True),
    "rrelu": lambda h: F.rrelu(h, inplace=True),
}


@pytest.mark.parametrize("function", IN_PLACE_ARGUMENT.values(), ids=IN_PLACE_ARGUMENT)
def test_an_in_place_argument_changes_the_operand(function):
    h = values()
    output, count = intercepted(function, h)
    assert count > 0
    assert output is h
    torch.testing.assert_close(h, function(values()), rtol=0, atol=1e-14)


HINGES = {
    "builtin abs": (abs, 1),
    "keyword input": (lambda h: F.relu(input=h), 1),
    "keyword bounds": (lambda h: torch.clamp(input=h, min=-1, max=1), 2),
    "keyword other": (lambda h: torch.max(h, other=OTHER), 1),
    "a parameter on the left": (lambda h: torch.maximum(torch.ones(3).double(), h), 1),
    "equal threshold and value": (lambda h: F.threshold(h, 1.0, 1.0), 1),
    "rrelu in eval": (lambda h: F.rrelu(h, training=False), 1),
    "two guards": (lambda h: h.clamp(-1e3, 1e3), 0),
    "one guard": (lambda h: h.clamp(max=1e4), 0),
    "infinite guards": (lambda h: torch.clamp(h, -torch.inf, torch.inf), 0),
    "hardtanh guard": (lambda h: F.hardtanh(h, -1e6, 1e6), 0),
    "a ReLU with a guard above": (lambda h: h.clamp(0, 1e6), 1),
    "a ReLU without a bound above": (lambda h: h.clamp(0, torch.inf), 1),
    "threshold with another value": (lambda h: F.threshold(h, 1.0, 20.0), 0),
    "clamp crossed": (lambda h: h.clamp(1, -1), None),
    "clamp crossed by tensors": (lambda h: h.clamp(OTHER, -OTHER), None),
    "max of all": (torch.max, 0),
    "max over a dimension": (lambda h: torch.max(h, 1).values, 0),
    "max by keyword": (lambda h: h.max(dim=1, keepdim=True).values, 0),
    "max with keepdim by position": (lambda h: h.max(1, True).values, 0),
    "torch.max with keepdim by position": (lambda h: torch.max(h, 1, True)[0], 0),
    "min over a dimension": (lambda h: h.min(0)[0], 0),
    "min with keepdim by position": (lambda h: torch.min(h, 1, True)[0], 0),
    "amax": (lambda h: h.amax(1), 0),
    "integers": (lambda h: h.long().clamp(min=0), 0),
    "integer relu": (lambda h: torch.relu(h.int()), 0),
    "booleans": (lambda h: torch.maximum(h > 0, h < -2), 0),
    "complex abs": (lambda h: torch.complex(h, h).abs(), 0),
    "an out argument": (lambda h: torch.clamp(h, 0, 1, out=torch.empty_like(h)), 0),
    "gelu": (F.gelu, 0),
}


@pytest.mark.parametrize(("function", "hinges"), HINGES.values(), ids=HINGES)
def test_the_value_stays_and_the_hinges_are_counted(function, hinges):
    output, count = intercepted(function, values())
    torch.testing.assert_close(output, function(values()), rtol=0, atol=1e-14)
    assert hinges is None or count == hinges


def test_a_random_slope_is_left_to_torch():
    mode = Interception(lambda number, z: torch.relu(z))
    torch.manual_seed(0)
    with mode:
        output = F.rrelu(values(), training=True)
    torch.manual_seed(0)
    assert torch.equal(output, F.rrelu(values(), training=True))
    assert mode.count == 0


def test_hinges_are_numbered_in_the_order_of_evaluation():
    seen = []

    def replacement(number: int, z: Tensor) -> Tensor:
        seen.append((number, z[0, 0].item(), mode.op_name))
        return torch.zeros_like(z)

    mode = Interception(replacement)
    with mode:
        output = F.relu(values()) + values().clamp(-1, 2) + values().abs()
    assert seen == [(0, -8, "relu"), (1, -7, "clamp"), (2, -10, "clamp"), (3, -8, "abs")]
    assert torch.equal(output, -1 - values())


def test_interception_ends_with_its_context():
    intercepted(torch.relu, values())
    assert torch._C._len_torch_function_stack() == 0
    with pytest.raises(ZeroDivisionError), Interception(lambda number, z: 1 / 0):
        torch.relu(values())
    assert torch._C._len_torch_function_stack() == 0
    assert torch.equal(torch.relu(values()), values() * (values() > 0))
