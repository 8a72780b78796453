"""One objective that judges, another that is climbed."""

import pytest
import torch
from objective_cases import LABELS, LOGITS, OFFSETS, REFERENCES, WEIGHTS

from facetwalk.objectives import CrossEntropy, Distance, Guided, Linear, Margin, Output
from facetwalk.types import InputError


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
