"""Losses of which each row has its own."""

import pytest
import torch
import torch.nn.functional as F
from objective_cases import CLASSES, KINDS, LABELS, LOGITS, TARGETS
from scores_by_hand import cross_entropy, margin
from torch import Tensor

from facetwalk.objectives import (
    CrossEntropy,
    Margin,
    MixedLosses,
    MixedTargetedLosses,
    Objective,
    TargetedMargin,
)


def mixed(z: list[float], y: int, t: int, kind: int) -> float:
    return [cross_entropy(z, y), margin(z, y), z[t] - z[y]][kind]


def mixed_targeted(z: list[float], y: int, kind: int) -> float:
    return [-cross_entropy(z, y), -margin(z, y)][kind]


@pytest.mark.parametrize("shift", range(3))
def test_mixed_losses_are_each_rows_own(shift):
    kinds = (KINDS + shift) % 3
    scores = MixedLosses(LABELS, TARGETS, kinds)(LOGITS)
    rows = zip(*(t.tolist() for t in (LOGITS, LABELS, TARGETS, kinds)), strict=True)
    assert scores.tolist() == pytest.approx([mixed(*row) for row in rows])
    targeted = MixedTargetedLosses(LABELS, kinds % 2)(LOGITS)
    rows = zip(*(t.tolist() for t in (LOGITS, LABELS, kinds % 2)), strict=True)
    assert targeted.tolist() == pytest.approx([mixed_targeted(*row) for row in rows])


def test_mixed_losses_have_the_gradients_of_their_parts():
    def gradient(objective: Objective) -> Tensor:
        leaf = LOGITS.clone().requires_grad_()
        (found,) = torch.autograd.grad(objective(leaf).sum(), leaf)
        return found

    towards = F.one_hot(TARGETS, CLASSES) - F.one_hot(LABELS, CLASSES)
    parts = [gradient(CrossEntropy(LABELS)), gradient(Margin(LABELS)), towards.double()]
    expected = torch.stack([parts[kind][row] for row, kind in enumerate(KINDS.tolist())])
    torch.testing.assert_close(gradient(MixedLosses(LABELS, TARGETS, KINDS)), expected)
    softmax = F.one_hot(LABELS, CLASSES) - LOGITS.softmax(1)
    parts = [softmax, gradient(TargetedMargin(LABELS))]
    expected = torch.stack([parts[kind][row] for row, kind in enumerate((KINDS % 2).tolist())])
    torch.testing.assert_close(gradient(MixedTargetedLosses(LABELS, KINDS % 2)), expected)
