"""The formulas of the classification losses, of one sample at a time."""

import math

import pytest
from torch import Tensor

from facetwalk.objectives import (
    DLR,
    CrossEntropy,
    Margin,
    Objective,
    TargetedCrossEntropy,
    TargetedDLR,
    TargetedMargin,
)


def cross_entropy(z: list[float], y: int) -> float:
    return math.log(sum(math.exp(v) for v in z)) - z[y]


def margin(z: list[float], y: int) -> float:
    return max(v for i, v in enumerate(z) if i != y) - z[y]


def dlr(z: list[float], y: int) -> float:
    first, _, third, *_ = sorted(z, reverse=True)
    return margin(z, y) / (first - third)


def targeted_dlr(z: list[float], y: int, t: int) -> float:
    first, _, third, fourth, *_ = sorted(z, reverse=True)
    return (z[t] - z[y]) / (first - (third + fourth) / 2)


CLASSIFICATION = {
    "CrossEntropy": (CrossEntropy, lambda z, y, t: cross_entropy(z, y)),
    "TargetedCrossEntropy": (TargetedCrossEntropy, lambda z, y, t: -cross_entropy(z, y)),
    "Margin": (Margin, lambda z, y, t: margin(z, y)),
    "TargetedMargin": (TargetedMargin, lambda z, y, t: -margin(z, y)),
    "DLR": (DLR, lambda z, y, t: dlr(z, y)),
    "TargetedDLR": (TargetedDLR, targeted_dlr),
}
every_classification = pytest.mark.parametrize(
    ("kind", "by_hand"), CLASSIFICATION.values(), ids=CLASSIFICATION.keys()
)


def classify(kind: type[Objective], labels: Tensor, targets: Tensor) -> Objective:
    return kind(labels, targets) if kind is TargetedDLR else kind(labels)
