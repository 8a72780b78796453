"""Networks that do not hear small changes: only dead neurons know what a large one would do."""

import math

import pytest
import torch
from torch import nn

import facetwalk as fw
from facetwalk.objectives import Margin
from facetwalk.solvers import Apgd, Sign

PIXELS, THRESHOLD, LURE = 100, 0.5, 0.02


@pytest.fixture(scope="module")
def net():
    """Logits 0 and `sum_i a_i * relu(x_i - 0.5)`, as robustly trained networks treat the pixels of
    MNIST, and a first pixel that counts for little, but at once."""
    hears = nn.Linear(PIXELS, PIXELS)
    hears.weight.data = torch.eye(PIXELS)
    hears.bias.data.fill_(-THRESHOLD)
    hears.bias.data[0] = 0
    sums = nn.Linear(PIXELS, 2, bias=False)
    sums.weight.data = torch.stack([torch.zeros(PIXELS), torch.linspace(0.1, 1, PIXELS)])
    sums.weight.data[1, 0] = LURE
    return nn.Sequential(hears, nn.ReLU(), sums).eval()


@pytest.mark.parametrize("ball", [fw.L2Ball, fw.L1Ball])
class TestDeafNetwork:
    def problem(self, net, ball):
        space = ball(torch.zeros(4, PIXELS), 1.0, bounds=(0, 1))
        return fw.Problem(net, Margin(torch.zeros(4, dtype=torch.long)), space)

    @pytest.mark.parametrize("solver", [Sign(), Apgd()])
    def test_exact_gradients_see_the_first_pixel_alone(self, net, ball, solver):
        found = fw.maximize(self.problem(net, ball), solver=solver, starts=10, x0="sample")
        torch.testing.assert_close(found.value, torch.full((4,), LURE))

    def test_the_default_finds_that_one_pixel_is_worth_most(self, net, ball):
        """With it in L2 a little of the first one, which costs next to none of the room."""
        found = fw.maximize(self.problem(net, ball), evaluations=1000)
        reached = math.hypot(1, LURE) if ball is fw.L2Ball else 1
        torch.testing.assert_close(found.value, torch.full((4,), reached - THRESHOLD))

    def test_the_default_reaches_a_threshold_with_few_gradients(self, net, ball):
        found = fw.maximize(self.problem(net, ball), evaluations=1000, stop_at=0.3)
        assert (found.value >= 0.3).all()
        assert found.evaluations.backward.max() <= 200
