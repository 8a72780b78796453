"""Objectives that cannot be, or do not fit the outputs, are refused."""

import pytest
import torch
from objective_cases import LABELS, OFFSETS, REFERENCES, TARGETS, WEIGHTS

from facetwalk.objectives import (
    DLR,
    CrossEntropy,
    DecisionCost,
    Distance,
    ExpectedCost,
    Linear,
    Margin,
    Output,
    TargetedDLR,
    TargetedMargin,
    as_objective,
)
from facetwalk.types import InputError

BAD_OBJECTIVES = {
    "float labels": (lambda: CrossEntropy(torch.tensor([0.0, 1.0])), "labels must be class ind"),
    "bool labels": (lambda: Margin(torch.tensor([True])), "torch.bool of shape"),
    "one-hot labels": (lambda: DLR(torch.eye(3).long()), r"of shape \(3, 3\)"),
    "a number as labels": (lambda: TargetedMargin(3), r"of shape \(\)"),
    "float targets": (
        lambda: TargetedDLR(torch.tensor([0]), torch.tensor([0.5])),
        "targets must be class indices",
    ),
    "weights without rows": (
        lambda: Linear(torch.zeros(2, 3), torch.zeros(2)),
        r"shapes \(2, 3\) and \(2,\)",
    ),
    "offsets of other rows": (
        lambda: Linear(torch.zeros(1, 2, 3), torch.zeros(1, 4)),
        r"weights \(B, rows, outputs\)",
    ),
    "offsets of other problems": (
        lambda: Linear(torch.zeros(5, 2, 3), torch.zeros(4, 2)),
        r"offsets \(B, rows\)",
    ),
    "whole costs": (lambda: ExpectedCost(torch.ones(1, 3).long()), "costs must be floats"),
    "costs of one row": (lambda: DecisionCost(torch.ones(3)), r"of shape \(3,\)"),
    "a number as objective": (lambda: as_objective(3), "must be callable; it is a int"),
    "a name as objective": (lambda: as_objective("margin"), "it is a str"),
}


@pytest.mark.parametrize(("make", "message"), BAD_OBJECTIVES.values(), ids=BAD_OBJECTIVES.keys())
def test_bad_objectives_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_labels_and_targets_of_different_numbers_are_refused():
    with pytest.raises(InputError):
        TargetedDLR(LABELS, TARGETS[:3])


BAD_OUTPUTS = {
    "label too high": (Margin([0, 3]), (2, 3), "labels run from 0 to 3, and the model has cl"),
    "label too low": (CrossEntropy([-1, 2]), (2, 3), "labels run from -1 to 2"),
    "target too high": (TargetedDLR([0], [4]), (1, 4), "targets run from 4 to 4"),
    "logits without a batch": (Margin([0]), (3,), r"logits \(B, classes\)"),
    "logits of an image": (CrossEntropy([0]), (1, 3, 2), r"this model's has shape \(1, 3, 2\)"),
    "one class": (TargetedMargin([0]), (1, 1), "two classes or more"),
    "two classes for DLR": (DLR([0]), (1, 2), "DLR needs three classes"),
    "three classes for targeted DLR": (TargetedDLR([0], [1]), (1, 3), "needs four classes"),
    "costs below zero": (DecisionCost(torch.tensor([[0.0, -1.0]])), (1, 2), "none below zero"),
    "costs without end": (ExpectedCost(torch.full((1, 2), torch.inf)), (1, 2), "finite numbers"),
    "costs of other classes": (
        DecisionCost(torch.ones(1, 4)),
        (2, 3),
        "costs of 4 classes, and the model has 3",
    ),
    "entry too high": (Output(6), (5, 2, 3), "output 6 was asked for, and the model has 6"),
    "entry too low": (Output(-4), (5, 3), "output -4 was asked for"),
    "reference of another shape": (
        Distance(REFERENCES),
        (5, 3, 2),
        r"shape \(5, 2, 3\) and the model's outputs \(5, 3, 2\)",
    ),
    "specification of other outputs": (
        Linear(WEIGHTS, OFFSETS),
        (5, 7),
        "on 6 outputs, and the model has 7",
    ),
}


@pytest.mark.parametrize(
    ("objective", "shape", "message"), BAD_OUTPUTS.values(), ids=BAD_OUTPUTS.keys()
)
def test_check_refuses_outputs_that_do_not_fit(objective, shape, message):
    with pytest.raises(InputError, match=message):
        objective.check(torch.zeros(shape))
