"""What the default finds with few evaluations, beside other ways to spend them."""

import torch
from torch import nn

import facetwalk as fw
from facetwalk.experiments.random_networks import Outputs, Run, random_networks
from facetwalk.objectives import Margin, Output
from facetwalk.solvers import Auto
from facetwalk.zoo import digits, digits_net


def test_many_inputs_are_climbed_higher_than_by_a_plan_for_few():
    """On the paper's Model C, with 128 inputs, by more than a hundredth."""
    outputs = Outputs.of(random_networks("C", 6), seeds=2)
    auto = Auto(evaluations=100)
    for_few, found = (
        torch.tensor(outputs.solve(Run(solver))["values"]).mean()
        for solver in (auto.plan(inputs=10), auto)
    )
    assert found > 1.01 * for_few


class Cone(nn.Module):
    """Minus the distance to a point, summed over 6 entries."""

    def __init__(self, top: torch.Tensor) -> None:
        super().__init__()
        self.top = nn.Buffer(top)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        away = (x - self.top).relu() + (self.top - x).relu()
        return -away.sum(1, keepdim=True)


def test_a_start_near_the_top_is_not_left():
    generator = torch.Generator().manual_seed(0)
    top = torch.rand(6, generator=generator) - 0.5
    beside = 0.02 * (torch.rand(20, 6, generator=generator) - 0.5).sign()
    box = fw.Box(torch.full((20, 6), -1.0), 1, shape=(6,))
    problem = fw.Problem(Cone(top).eval(), Output(0), box)
    found = fw.maximize(problem, evaluations=20, x0=top + beside).value
    assert (found > -6 * 0.02).all()
    assert found.mean() > fw.maximize(problem, evaluations=20).value.mean()


def test_a_margin_has_a_population_however_many_inputs_there_are():
    """It has a hill for each class: one run climbs one of them."""
    images, labels = (part[:60] for part in digits("test"))
    ball = fw.LinfBall(images, 0.2, bounds=(0, 1))
    problem = fw.Problem(digits_net(), Margin(labels), ball)
    auto = Auto(evaluations=100)
    found, alone = (
        fw.maximize(problem, solver=solver).value.mean() for solver in (auto, auto.plan(inputs=64))
    )
    assert found > alone + 0.1
