"""Classification losses against their formulas."""

import pytest
import torch
import torch.nn.functional as F
from objective_cases import CLASSES, LABELS, LOGITS, TARGETS
from scores_by_hand import classify, every_classification

from facetwalk.objectives import (
    DLR,
    CrossEntropy,
    Margin,
    TargetedCrossEntropy,
    TargetedDLR,
    TargetedMargin,
)


@every_classification
def test_classification_scores_match_a_loop_over_samples(kind, by_hand):
    scores = classify(kind, LABELS, TARGETS)(LOGITS)
    rows = zip(LOGITS.tolist(), LABELS.tolist(), TARGETS.tolist(), strict=True)
    assert scores.tolist() == pytest.approx([by_hand(z, y, t) for z, y, t in rows])


@pytest.mark.parametrize(("kind", "sign"), [(CrossEntropy, 1), (TargetedCrossEntropy, -1)])
def test_cross_entropy_is_torchs(kind, sign):
    expected = sign * F.cross_entropy(LOGITS, LABELS, reduction="none")
    torch.testing.assert_close(kind(LABELS)(LOGITS), expected)


@every_classification
def test_one_label_serves_every_row(kind, by_hand):
    one = classify(kind, torch.tensor([3]), torch.tensor([1]))
    expected = [by_hand(z, 3, 1) for z in LOGITS.tolist()]
    assert one(LOGITS).tolist() == pytest.approx(expected)
    repeated = one.select(torch.zeros(5, dtype=torch.int64))
    assert repeated(LOGITS).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("kind", [Margin, DLR])
def test_untargeted_scores_are_positive_exactly_where_misclassified(kind):
    untied = torch.tensor([0, 2, 3, 4])
    wrong = LOGITS.argmax(1) != LABELS
    assert wrong[untied].unique().tolist() == [False, True]
    assert torch.equal((kind(LABELS)(LOGITS) > 0)[untied], wrong[untied])


@pytest.mark.parametrize("kind", [Margin, TargetedMargin, DLR])
def test_a_tie_with_the_label_scores_zero(kind):
    assert kind(LABELS)(LOGITS)[1] == 0


@pytest.mark.parametrize("kind", [DLR, TargetedDLR])
def test_ratio_scores_ignore_the_scale_and_shift_of_the_logits(kind):
    objective = classify(kind, LABELS, TARGETS)
    torch.testing.assert_close(objective(7 * LOGITS - 4), objective(LOGITS))


@pytest.mark.parametrize("kind", [DLR, TargetedDLR])
def test_ratio_scores_of_equal_logits_are_finite(kind):
    assert not classify(kind, LABELS, TARGETS)(torch.zeros(5, CLASSES)).any()


@pytest.mark.parametrize(("kind", "sign"), [(Margin, 1.0), (TargetedMargin, -1.0)])
def test_margins_pull_on_the_label_and_its_best_rival(kind, sign):
    logits = torch.tensor([[1.0, 5.0, 3.0, 4.0]], requires_grad=True)
    kind(torch.tensor([1]))(logits).sum().backward()
    assert logits.grad.tolist() == [[0.0, -sign, 0.0, sign]]


@pytest.mark.parametrize("labels", [[0, 2], torch.tensor([0, 2], dtype=torch.uint8)])
def test_labels_may_be_a_list_or_any_integers(labels):
    logits = torch.tensor([[1.0, 2.0, 4.0], [5.0, 0.0, 1.0]])
    assert Margin(labels)(logits).tolist() == [3.0, 4.0]
