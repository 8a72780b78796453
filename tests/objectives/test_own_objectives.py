"""Plain callables and objectives of one's own."""

from dataclasses import dataclass

import torch
from objective_cases import LABELS
from torch import Tensor

from facetwalk.objectives import Margin, Objective, as_objective


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
