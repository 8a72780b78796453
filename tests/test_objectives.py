from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from facetwalk.objectives import (
    DLR,
    CrossEntropy,
    Custom,
    Distance,
    Guided,
    Linear,
    Margin,
    MixedLosses,
    MixedTargetedLosses,
    Objective,
    Output,
    TargetedCrossEntropy,
    TargetedDLR,
    TargetedMargin,
    as_objective,
)
from facetwalk.types import InputError

CLASSES = 6
LABELS = torch.tensor([0, 1, 5, 3, 3])
TARGETS = torch.tensor([2, 0, 4, 5, 1])


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


LOGITS = 3 * draw(5, CLASSES)
LOGITS[0, 0] = 10
LOGITS[1, :2] = 10
IMAGES, REFERENCES = draw(5, 2, 3, seed=1), draw(5, 2, 3, seed=2)
WEIGHTS, OFFSETS = draw(5, 4, CLASSES, seed=3), draw(5, 4, seed=4)


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


@pytest.mark.parametrize("index", [0, 3, 5, -1])
@pytest.mark.parametrize("sign", [1, -1])
def test_output_is_one_entry_of_the_flattened_output(index, sign):
    expected = [sign * row.flatten().tolist()[index] for row in IMAGES]
    assert Output(index, sign)(IMAGES).tolist() == expected


@pytest.mark.parametrize("p", [1, 2, 3])
def test_distance_is_minus_the_mean_power_of_the_difference(p):
    expected = []
    for a, b in zip(IMAGES, REFERENCES, strict=True):
        pairs = zip(a.flatten().tolist(), b.flatten().tolist(), strict=True)
        expected.append(-sum(abs(u - v) ** p for u, v in pairs) / 6)
    assert Distance(REFERENCES, p)(IMAGES).tolist() == pytest.approx(expected)


def test_distance_to_a_shared_reference():
    shared = Distance(REFERENCES[:1])(IMAGES)
    expected = [-F.mse_loss(image, REFERENCES[0]).item() for image in IMAGES]
    assert shared.tolist() == pytest.approx(expected)


def test_distance_is_largest_and_zero_at_the_reference():
    assert not Distance(REFERENCES)(REFERENCES).any()
    assert (Distance(REFERENCES)(IMAGES) < 0).all()


@pytest.mark.parametrize("shared", [False, True])
def test_linear_is_the_smallest_of_its_rows(shared):
    weights, offsets = (WEIGHTS[:1], OFFSETS[:1]) if shared else (WEIGHTS, OFFSETS)
    expected = []
    for i, image in enumerate(IMAGES):
        row = 0 if shared else i
        y = image.flatten().tolist()
        values = [
            sum(w * v for w, v in zip(ws, y, strict=True)) + c
            for ws, c in zip(weights[row].tolist(), offsets[row].tolist(), strict=True)
        ]
        expected.append(min(values))
    assert Linear(weights, offsets)(IMAGES).tolist() == pytest.approx(expected)


KINDS = torch.tensor([0, 1, 2, 2, 0])


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


PER_PROBLEM = {
    **{
        name: (classify(kind, LABELS, TARGETS), LOGITS)
        for name, (kind, _) in CLASSIFICATION.items()
    },
    "Distance": (Distance(REFERENCES), IMAGES),
    "Linear": (Linear(WEIGHTS, OFFSETS), IMAGES),
    "MixedLosses": (MixedLosses(LABELS, TARGETS, KINDS), LOGITS),
    "MixedTargetedLosses": (MixedTargetedLosses(LABELS, KINDS % 2), LOGITS),
    "Guided": (Guided(Margin(LABELS), CrossEntropy(LABELS)), LOGITS),
    "Guided, one shared": (Guided(Output(1), DLR(LABELS)), LOGITS),
    "Guided, mixed": (Guided(DLR(LABELS), MixedLosses(LABELS, TARGETS, KINDS)), LOGITS),
}
SHARED = {
    "shared Distance": (Distance(REFERENCES[:1]), IMAGES),
    "shared Linear": (Linear(WEIGHTS[:1], OFFSETS[:1]), IMAGES),
    "Output": (Output(2), IMAGES),
    "Custom": (Custom(lambda y: y.flatten(1).amax(1)), IMAGES),
    "shared Guided": (Guided(Output(2), Output(0)), IMAGES),
}


@pytest.mark.parametrize(
    ("objective", "outputs"),
    [*PER_PROBLEM.values(), *SHARED.values()],
    ids=[*PER_PROBLEM, *SHARED],
)
@pytest.mark.parametrize("rows", [[2], [4, 0, 0, 3], [0, 1, 2, 3, 4]])
def test_selected_objectives_score_as_the_rows_of_all(objective, outputs, rows):
    index = torch.tensor(rows)
    selected = objective.select(index)
    assert type(selected) is type(objective)
    torch.testing.assert_close(selected(outputs[index]), objective(outputs)[index])


@pytest.mark.parametrize(("objective", "outputs"), PER_PROBLEM.values(), ids=PER_PROBLEM.keys())
def test_count_is_the_number_of_problems(objective, outputs):
    assert objective.count == 5
    assert objective.select(torch.tensor([0, 2])).count == 2


@pytest.mark.parametrize(("objective", "outputs"), SHARED.values(), ids=SHARED.keys())
def test_count_of_a_shared_objective_is_one(objective, outputs):
    assert objective.count == 1
    assert objective.select(torch.tensor([0, 2])).count == 1


@pytest.mark.parametrize(
    ("objective", "outputs"),
    [*PER_PROBLEM.values(), *SHARED.values()],
    ids=[*PER_PROBLEM, *SHARED],
)
def test_objectives_change_precision_with_the_model(objective, outputs):
    single = objective.to(torch.device("cpu"), torch.float32)
    scores = single(outputs.float())
    assert scores.dtype == torch.float32
    torch.testing.assert_close(scores.double(), objective(outputs), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("objective", "outputs"),
    [*PER_PROBLEM.values(), *SHARED.values()],
    ids=[*PER_PROBLEM, *SHARED],
)
def test_check_accepts_outputs_that_fit(objective, outputs):
    assert objective.check(outputs) is None
    assert objective(outputs).shape == (5,)


def test_a_plain_callable_becomes_an_objective():
    objective = as_objective(lambda y: y.square().sum(1))
    assert isinstance(objective, Objective)
    assert objective(torch.tensor([[1.0, 2.0], [3.0, 0.0]])).tolist() == [5.0, 9.0]


def test_an_objective_stays_itself():
    objective = Margin(LABELS)
    assert as_objective(objective) is objective


@dataclass(frozen=True, eq=False)
class Weighted(Objective):
    weight: Tensor

    def __call__(self, outputs: Tensor) -> Tensor:
        return self.weight * outputs.sum(1)


def test_an_objective_of_ones_own_is_selected_counted_and_moved():
    objective = Weighted(torch.tensor([1.0, 10.0, 100.0]))
    assert as_objective(objective) is objective
    assert objective.count == 3
    last = objective.select(torch.tensor([2])).to(torch.device("cpu"), torch.float64)
    assert last(torch.tensor([[1.0, 2.0]], dtype=torch.float64)).tolist() == [300.0]
    assert last.check(torch.zeros(1, 2)) is None


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


class TestGuided:
    def test_points_are_judged_by_the_score(self):
        guided = Guided(Margin(LABELS), CrossEntropy(LABELS))
        assert torch.equal(guided(LOGITS), Margin(LABELS)(LOGITS))

    @pytest.mark.parametrize("rows", [[2], [4, 0, 0, 3]])
    def test_its_parts_are_selected_and_moved_together(self, rows):
        guided, index = Guided(Margin(LABELS), CrossEntropy(LABELS)), torch.tensor(rows)
        some = guided.select(index)
        assert torch.equal(some.guide.labels, LABELS[index])
        assert torch.equal(some.score.labels, LABELS[index])
        assert some.count == len(rows)
        far = Guided(Distance(REFERENCES), Linear(WEIGHTS, OFFSETS))
        single = far.to(torch.device("cpu"), torch.float32)
        assert single.score.reference.dtype == single.guide.weights.dtype == torch.float32

    @pytest.mark.parametrize(
        "guided",
        [Guided(Margin([7]), CrossEntropy([0])), Guided(Output(0), CrossEntropy([7]))],
        ids=["score", "guide"],
    )
    def test_both_parts_are_checked(self, guided):
        with pytest.raises(InputError, match="labels run from 7 to 7"):
            guided.check(LOGITS)

    def test_its_parts_may_be_plain_functions(self):
        guided = Guided(lambda y: y[:, 0], lambda y: y.square().sum(1))
        assert torch.equal(guided(LOGITS), LOGITS[:, 0])
        torch.testing.assert_close(guided.guide(LOGITS), LOGITS.square().sum(1))
        assert guided.count == 1

    def test_it_knows_no_alternative(self):
        guided = Guided(Margin(LABELS), CrossEntropy(LABELS))
        assert guided.alternative(LOGITS, torch.arange(5)) is guided


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
BETWEEN = {
    2: [MARGIN, 0, 0, MARGIN, 0, 0, MARGIN, 0, 0, MARGIN,
        0, 0, MARGIN, 0, 0, MARGIN, 0, 0, MARGIN, 0],
    3: [MARGIN, 1, 0, MARGIN, 1, 0, MARGIN, 1, 0, MARGIN,
        1, 0, MARGIN, 1, 0, MARGIN, 1, 0, MARGIN, 1],
    4: [MARGIN, 1, 2, MARGIN, 0, 1, MARGIN, 2, 0, MARGIN,
        1, 2, MARGIN, 0, 1, MARGIN, 2, 0, MARGIN, 1],
    10: [MARGIN, 1, 2, MARGIN, 3, 4, MARGIN, 5, 6, MARGIN,
         7, 8, MARGIN, 0, 1, MARGIN, 2, 3, MARGIN, 4],
}
# fmt: on
"""By the number of classes: the odd turns from 1 to 39, a number being the rank of one class."""
UNTARGETED = [
    (kind, classes)
    for kind in (CrossEntropy, Margin, DLR)
    for classes in BETWEEN
    if classes > 2 or kind is not DLR
]


class TestAlternatives:
    """What members of a population climb instead."""

    @pytest.mark.parametrize(("kind", "classes"), UNTARGETED)
    def test_turns_are_those_written_out_here(self, kind, classes):
        logits, labels, turn = many(41, classes)
        found = kind(labels).alternative(logits, turn)
        assert isinstance(found, MixedLosses)
        assert torch.equal(found.labels, labels)
        others, climbed = by_rank(logits, labels), []
        for row, number in enumerate(found.kind.tolist()):
            rank = others[row].index(found.targets[row].item())
            climbed.append([CE, MARGIN, rank][number])
        assert climbed[::2] == [CE] * 21
        assert climbed[1::2] == BETWEEN[classes]

    @pytest.mark.parametrize(("kind", "classes"), UNTARGETED)
    def test_scores_are_those_of_the_turn(self, kind, classes):
        logits, labels, turn = many(41, classes)
        scores = kind(labels).alternative(logits, turn)(logits).tolist()
        others = by_rank(logits, labels)
        for row, (z, y) in enumerate(zip(logits.tolist(), labels.tolist(), strict=True)):
            climbed = BETWEEN[classes][row // 2] if row % 2 else CE
            if climbed == CE:
                expected = cross_entropy(z, y)
            elif climbed == MARGIN:
                expected = margin(z, y)
            else:
                expected = z[others[row][climbed]] - z[y]
            assert scores[row] == pytest.approx(expected)

    @pytest.mark.parametrize("classes", [2, 3, 4, 6, 12])
    def test_every_other_class_gets_its_turn_as_often(self, classes):
        turns = 3 * 2 * (classes - 1)
        logits = draw(1, classes).expand(turns, -1)
        labels = torch.full((turns,), classes - 1)
        found = Margin(labels).alternative(logits, 1000 * turns + torch.arange(turns))
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
        assert not torch.isclose(other, together).any()

    @pytest.mark.parametrize(
        ("objective", "outputs"),
        [SHARED["Output"], SHARED["Custom"], PER_PROBLEM["Distance"], PER_PROBLEM["Linear"]],
    )
    def test_other_objectives_know_none(self, objective, outputs):
        assert objective.alternative(outputs, torch.arange(5)) is objective
