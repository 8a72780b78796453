"""What members of a population climb instead of a classification loss."""

import pytest
import torch
from objective_cases import PER_PROBLEM, SHARED, draw
from scores_by_hand import classify, cross_entropy, every_classification, margin
from torch import Tensor

from facetwalk.objectives import (
    DLR,
    CrossEntropy,
    Margin,
    MixedLosses,
    MixedTargetedLosses,
    TargetedCrossEntropy,
    TargetedDLR,
    TargetedMargin,
)


def many(count: int, classes: int, seed: int = 5) -> tuple[Tensor, Tensor, Tensor]:
    """Logits, labels and turns of many rows."""
    labels = torch.arange(count) % classes
    return draw(count, classes, seed=seed), labels, torch.arange(count)


def by_rank(logits: Tensor, labels: Tensor) -> list[list[int]]:
    """The other classes of each row, likeliest first."""
    return [
        sorted((c for c in range(len(z)) if c != y), key=lambda c, z=z: -z[c])
        for z, y in zip(logits.tolist(), labels.tolist(), strict=True)
    ]


CE, MARGIN = "cross-entropy", "margin"
# fmt: off
TURNS = {
    CrossEntropy: {
        2: [CE, MARGIN, CE, 0, CE, 0] * 6,
        3: [CE, MARGIN, CE, 1, CE, 0] * 6,
        4: [CE, MARGIN, CE, 1, CE, 2, CE, MARGIN, CE, 0, CE, 1, CE, MARGIN, CE, 2, CE, 0] * 2,
        10: [CE, MARGIN, CE, 1, CE, 2, CE, MARGIN, CE, 3, CE, 4, CE, MARGIN, CE, 5, CE, 6,
             CE, MARGIN, CE, 7, CE, 8, CE, MARGIN, CE, 0, CE, 1, CE, MARGIN, CE, 2, CE, 3],
    },
    Margin: {
        2: [CE, MARGIN, 0, 0] * 9,
        3: [CE, MARGIN, 1, 0] * 9,
        4: [CE, MARGIN, 1, 2, CE, MARGIN, 0, 1, CE, MARGIN, 2, 0] * 3,
        10: [CE, MARGIN, 1, 2, CE, MARGIN, 3, 4, CE, MARGIN, 5, 6, CE, MARGIN, 7, 8,
             CE, MARGIN, 0, 1, CE, MARGIN, 2, 3, CE, MARGIN, 4, 5, CE, MARGIN, 6, 7,
             CE, MARGIN, 8, 0],
    },
}
# fmt: on
TURNS[DLR] = {classes: turns for classes, turns in TURNS[Margin].items() if classes > 2}
"""What turns 0 to 35 climb, by the number of classes; a number is the rank of one class."""
UNTARGETED = [(kind, classes) for kind, turns in TURNS.items() for classes in turns]


class TestAlternatives:
    """What members of a population climb instead."""

    @pytest.mark.parametrize(("kind", "classes"), UNTARGETED)
    def test_turns_are_those_written_out_here(self, kind, classes):
        logits, labels, turn = many(36, classes)
        found = kind(labels).alternative(logits, turn)
        assert isinstance(found, MixedLosses)
        assert torch.equal(found.labels, labels)
        others, climbed = by_rank(logits, labels), []
        for row, number in enumerate(found.kind.tolist()):
            rank = others[row].index(found.targets[row].item())
            climbed.append([CE, MARGIN, rank][number])
        assert climbed == TURNS[kind][classes]

    @pytest.mark.parametrize(("kind", "classes"), UNTARGETED)
    def test_scores_are_those_of_the_turn(self, kind, classes):
        logits, labels, turn = many(36, classes)
        scores = kind(labels).alternative(logits, turn)(logits).tolist()
        others = by_rank(logits, labels)
        for row, (z, y) in enumerate(zip(logits.tolist(), labels.tolist(), strict=True)):
            climbed = TURNS[kind][classes][row]
            if climbed == CE:
                expected = cross_entropy(z, y)
            elif climbed == MARGIN:
                expected = margin(z, y)
            else:
                expected = z[others[row][climbed]] - z[y]
            assert scores[row] == pytest.approx(expected)

    @pytest.mark.parametrize("classes", [2, 3, 4, 6, 12])
    @pytest.mark.parametrize(("kind", "cycle"), [(CrossEntropy, 6), (Margin, 4)])
    def test_every_other_class_gets_its_turn_as_often(self, kind, cycle, classes):
        turns = cycle * (classes - 1)
        logits = draw(1, classes).expand(turns, -1)
        labels = torch.full((turns,), classes - 1)
        found = kind(labels).alternative(logits, 1000 * turns + torch.arange(turns))
        one = found.targets[found.kind == 2]
        assert one.bincount(minlength=classes).tolist() == [2] * (classes - 1) + [0]

    @pytest.mark.parametrize("kind", [TargetedCrossEntropy, TargetedMargin, TargetedDLR])
    def test_targeted_ones_keep_their_goal_and_take_turns(self, kind):
        logits, labels, turn = many(41, 5)
        targets = (labels + 1) % 5
        goal = targets if kind is TargetedDLR else labels
        found = classify(kind, labels, targets).alternative(logits, turn)
        assert isinstance(found, MixedTargetedLosses)
        assert torch.equal(found.labels, goal)
        scores = found(logits).tolist()
        for row, (z, y) in enumerate(zip(logits.tolist(), goal.tolist(), strict=True)):
            expected = -margin(z, y) if row % 2 else -cross_entropy(z, y)
            assert scores[row] == pytest.approx(expected)

    @every_classification
    def test_one_label_serves_every_row(self, kind, by_hand):
        logits, _, turn = many(20, 5)
        one = classify(kind, torch.tensor([3]), torch.tensor([1])).alternative(logits, turn)
        threes, ones = torch.full((20,), 3), torch.full((20,), 1)
        each = classify(kind, threes, ones).alternative(logits, turn)
        assert one.count == each.count == 20
        assert torch.equal(one(logits), each(logits))

    @every_classification
    def test_each_rows_depends_on_its_own_turn_alone(self, kind, by_hand):
        logits, labels, turn = many(30, 6)
        objective = classify(kind, labels, (labels + 1) % 6)
        together = objective.alternative(logits, turn)(logits)
        for row in ([4], [29, 3], [7, 7, 0]):
            index = torch.tensor(row)
            alone = objective.select(index).alternative(logits[index], turn[index])
            torch.testing.assert_close(alone(logits[index]), together[index])
        other = objective.alternative(logits, turn + 1)(logits)
        assert not torch.isclose(other, together).all()

    @pytest.mark.parametrize(
        ("objective", "outputs"),
        [SHARED["Output"], SHARED["Custom"], PER_PROBLEM["Distance"], PER_PROBLEM["Linear"]],
    )
    def test_other_objectives_know_none(self, objective, outputs):
        assert objective.alternative(outputs, torch.arange(5)) is objective


@pytest.mark.parametrize("objective", [Margin, TargetedMargin])
@pytest.mark.parametrize("labels", [[0, 3, 4, 1, 1], [2]], ids=["per problem", "shared"])
def test_as_an_alternative_it_is_of_their_kind_and_itself_to_the_last_bit(objective, labels):
    own = objective(torch.tensor(labels))
    logits = draw(5, 6, seed=3).float()
    logits[0, 1:3] = logits[0].max() + 1  # a tie
    alike = own.as_alternative(len(logits))
    other = own.alternative(logits, torch.arange(len(logits)))
    assert type(alike) is type(other)
    for name, values in vars(other).items():
        assert getattr(alike, name).shape == values.shape
        assert getattr(alike, name).dtype == values.dtype
    found = []
    for each in (own, alike):
        leaf = logits.clone().requires_grad_()
        values = each(leaf)
        found.append((values.detach(), *torch.autograd.grad(values.sum(), leaf)))
    assert all(map(torch.equal, *found))


@pytest.mark.parametrize("objective", [CrossEntropy, TargetedCrossEntropy, DLR])
def test_one_that_is_rounded_otherwise_has_no_such_form(objective):
    own = objective(torch.arange(5))
    assert own.as_alternative(5) is own
