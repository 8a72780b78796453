"""Spaces that cannot be get one clear sentence."""

import math

import pytest
import torch
from space_cases import EPS

from facetwalk.spaces import Box, Intersection, L1Ball, L2Ball, LinfBall
from facetwalk.types import InputError

ROW = torch.zeros(2, 3)
BAD_SPACES = {
    "box of numbers without a shape": (lambda: Box(-1, 1), "needs a shape"),
    "infinite box": (lambda: Box(0, math.inf, shape=(3,)), "must be finite"),
    "NaN box": (lambda: Box(math.nan, 1, shape=(3,)), "hold NaN"),
    "empty box": (lambda: Box(torch.tensor([0.0, 2.0]), 1.0), "low <= high"),
    "box of another size": (lambda: Box(torch.zeros(2), 1, shape=(3,)), "do not fit"),
    "box of too many dimensions": (
        lambda: Box(torch.zeros(2, 2, 3), 1, shape=(3,)),
        "do not fit",
    ),
    "box of a number as its shape": (lambda: Box(-1, 1, shape=10), r"shape=\(10,\)\); it is 10"),
    "box of no entries": (lambda: Box(-1, 1, shape=(3, 0)), r"positive whole .* it is \(3, 0\)"),
    "box of half an entry": (lambda: Box(-1, 1, shape=(2.5,)), r"positive whole .* it is \(2.5,\)"),
    "box without dimensions": (lambda: Box(-1, 1, shape=()), r"positive whole .* it is \(\)"),
    "box of numbers in tensors": (lambda: Box(torch.tensor(0.0), 1), "positive whole"),
    "box of no problems": (lambda: Box(torch.zeros(0, 3), 1, shape=(3,)), "at least one problem"),
    "box of a word": (lambda: Box("low", 1, shape=(3,)), "a number or a tensor; it is 'low'"),
    "bounds of another size": (
        lambda: L2Ball(ROW, 1.0, bounds=(torch.zeros(2), 1)),
        r"bounds of shape \(2,\)",
    ),
    "list of centres": (lambda: L2Ball([[0.0]], 1.0), "as a tensor"),
    "one centre without a batch": (lambda: L2Ball(torch.zeros(3), 1.0), r"pass x\[None\]"),
    "no centres": (lambda: L2Ball(torch.zeros(0, 3), 1.0), "at least one problem"),
    "centres of no entries": (lambda: L2Ball(torch.zeros(3, 0), 1.0), "at least one"),
    "one bound": (lambda: L2Ball(ROW, 1.0, bounds=1), "bounds must be two, .* they are 1"),
    "three bounds": (lambda: L2Ball(ROW, 1.0, bounds=(0, 1, 2)), r"must be two, .* \(0, 1, 2\)"),
    "half a bound": (
        lambda: L2Ball(ROW, 1.0, bounds=(None, 1)),
        "a number or a tensor; it is None",
    ),
    "bounds of no problems": (
        lambda: L2Ball(ROW, 1.0, bounds=(torch.zeros(0, 3), 1)),
        "bounds for 0 problems and 2 centres",
    ),
    "no eps": (lambda: L2Ball(ROW, None), "each of the 2 problems; it is None"),
    "integer centres": (lambda: L2Ball(ROW.byte(), 1.0), "torch.uint8: pass floats"),
    "NaN centres": (lambda: L2Ball(ROW * math.nan, 1.0), "NaN or infinite"),
    "infinite centres": (lambda: L2Ball(ROW + math.inf, 1.0), "NaN or infinite"),
    "too many eps": (lambda: L2Ball(ROW, torch.ones(3)), "each of the 2 problems"),
    "eps with two dimensions": (lambda: L2Ball(ROW, torch.ones(2, 1)), r"has shape \(2, 1\)"),
    "negative eps": (lambda: L2Ball(ROW, -0.1), "not negative"),
    "one negative eps": (lambda: L2Ball(ROW, torch.tensor([1.0, -1.0])), "not negative"),
    "NaN eps": (lambda: L2Ball(ROW, math.nan), "finite number"),
    "infinite eps": (lambda: L2Ball(ROW, math.inf), "finite number"),
    "centre below the bounds": (
        lambda: L2Ball(torch.tensor([[0.5], [-1.0]]), 1.0, bounds=(0, 1)),
        "1 of 2 centres lie outside",
    ),
    "centres above the bounds": (
        lambda: L2Ball(ROW + 255, 1.0, bounds=(0, 1)),
        "2 of 2 centres lie outside",
    ),
    "intersection of nothing": (lambda: Intersection(), "one or more spaces"),
    "intersection of a list": (
        lambda: Intersection([L2Ball(ROW, 1.0), L1Ball(ROW, 1.0)]),
        r"one by one, as in Intersection\(box, ball\); .* is a list",
    ),
    "intersection with a tensor": (
        lambda: Intersection(L2Ball(ROW, 1.0), ROW),
        "spaces one by one, .* is a Tensor",
    ),
    "intersection of shapes": (
        lambda: Intersection(Box(0, 1, shape=(2,)), Box(0, 1, shape=(3,))),
        "of the same shape",
    ),
    "intersection of counts": (
        lambda: Intersection(L2Ball(ROW, 1.0), L2Ball(torch.zeros(4, 3), 1.0)),
        r"numbers of problems: \[2, 4\]",
    ),
    "disjoint boxes": (
        lambda: Intersection(Box(0, 1, shape=(3,)), LinfBall(ROW + 5, 1.0)),
        "boxes of the intersection have no common point",
    ),
    "disjoint ball and box": (
        lambda: Intersection(Box(1, 2, shape=(3,)), L2Ball(ROW, 1.0)),
        "spaces have no common point",
    ),
    "one problem disjoint": (
        lambda: Intersection(L2Ball(ROW, EPS), L1Ball(ROW[:1] + 0.6, 0.5)),
        "spaces have no common point",
    ),
}


@pytest.mark.parametrize(("make", "message"), BAD_SPACES.values(), ids=BAD_SPACES.keys())
def test_bad_spaces_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


UNFIT_BOUNDS = {
    "box of 2 lows and 4 highs": lambda: Box(ROW, torch.ones(4, 3), shape=(3,)),
    "box of 2-vector and 3-vector": lambda: Box(torch.zeros(2), torch.ones(3)),
    "4 bounds for 2 centres": lambda: L2Ball(ROW, 1.0, bounds=(-torch.ones(4, 3), 1)),
    "2 bounds for 1 centre": lambda: L2Ball(ROW[:1], 1.0, bounds=(-1, torch.ones(2, 3))),
    "NaN bounds": lambda: L2Ball(ROW, 1.0, bounds=(math.nan, 1)),
}


@pytest.mark.parametrize("make", UNFIT_BOUNDS.values(), ids=UNFIT_BOUNDS.keys())
def test_bounds_that_do_not_fit_are_refused(make):
    with pytest.raises(InputError):
        make()
