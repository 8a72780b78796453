"""Activation descent finds optima behind dead neurons."""

from dataclasses import replace

import pytest
import torch
from torch import nn

import facetwalk as fw
from facetwalk.objectives import Output
from facetwalk.solvers import ActivationDescent, Sign


def one_layer(weight: list[list[float]], bias: list[float], out: list[float], slope: list[float]):
    """`out . max(weight x + bias, 0) + slope . x`: the slope by two neurons that are always on."""
    neurons = len(bias) + 2
    net = nn.Sequential(nn.Linear(len(slope), neurons), nn.ReLU(), nn.Linear(neurons, 1))
    on = [slope, [-s for s in slope]]
    net[0].weight.data = torch.tensor(weight + on)
    net[0].bias.data = torch.tensor([*bias, 50.0, 50.0])
    net[2].weight.data = torch.tensor([[*out, 0.5, -0.5]])
    net[2].bias.data = torch.zeros(1)
    return net.double().eval()


def from_zero(net: nn.Module, space: fw.Space, solver) -> fw.Result:
    zero = torch.zeros(1, *space.shape)
    return fw.maximize(fw.Problem(net, Output(0), space), solver=solver, x0=zero)


DESCENT = ActivationDescent(steps=50, width=0.4)


class TestBehindDeadNeurons:
    def test_a_plateau_in_one_dimension(self):
        net = one_layer([[1.0]], [-0.5], [1.0], [0.0])  # max(x - 0.5, 0)
        space = fw.Box(-1, 1, shape=(1,))
        stuck = from_zero(net, space, Sign(steps=50))
        assert (stuck.x.item(), stuck.value.item()) == (0, 0)
        found = from_zero(net, space, DESCENT)
        assert (found.x.item(), found.value.item()) == (1, 0.5)

    def test_a_slope_that_leads_away(self):
        net = one_layer([[1.0]], [-0.3], [3.0], [-0.2])  # 3 max(x - 0.3, 0) - 0.2 x
        space = fw.Box(-1, 1, shape=(1,))
        assert from_zero(net, space, Sign(steps=50)).value.item() == pytest.approx(0.2)
        found = from_zero(net, space, DESCENT)
        assert found.value.item() == pytest.approx(3 * 0.7 - 0.2)

    def test_two_dimensions_with_one_neuron_each(self):
        net = one_layer([[2.0, 0.0], [0.0, -3.0]], [-1.0, -1.5], [1.0, 2.0], [-0.1, 0.1])
        space = fw.Box(-1, 1, shape=(2,))
        assert from_zero(net, space, Sign(steps=50)).value.item() == pytest.approx(0.2)
        found = from_zero(net, space, DESCENT)
        assert found.x.tolist() == [[1, -1]]
        assert found.value.item() == pytest.approx(1 + 2 * 1.5 - 0.2)

    @pytest.mark.parametrize(
        ("ball", "best"), [(fw.LinfBall, 7.0), (fw.L2Ball, 5.0), (fw.L1Ball, 4.0)]
    )
    def test_every_ball(self, ball, best):
        """The maximum of `max(w . x - 1, 0)` is the dual norm of w, less 1."""
        net = one_layer([[3.0, -4.0, 0.0]], [-1.0], [1.0], [0.0, 0.0, 0.0])
        space = ball(torch.zeros(1, 3), eps=1.0)
        assert from_zero(net, space, Sign(steps=100)).value.item() == 0
        found = from_zero(net, space, replace(DESCENT, steps=100))
        assert found.value.item() == pytest.approx(best - 1, abs=1e-6)

    def test_a_neuron_behind_another(self):
        """`max(max(x - 0.2, 0) - 0.3, 0)`: both are off at zero."""
        net = nn.Sequential(nn.Linear(1, 1), nn.ReLU(), nn.Linear(1, 1), nn.ReLU()).double().eval()
        for layer, bias in ((net[0], -0.2), (net[2], -0.3)):
            layer.weight.data.fill_(1.0)
            layer.bias.data.fill_(bias)
        space = fw.Box(-1, 1, shape=(1,))
        assert from_zero(net, space, Sign(steps=50)).value.item() == 0
        dead = from_zero(net, space, DESCENT)
        assert dead.value.item() == 0, "with its own input off, a neuron has no normal"
        near = torch.full((1, 1), 0.3)
        problem = fw.Problem(net, Output(0), space)
        assert fw.maximize(problem, solver=Sign(steps=50), x0=near).value.item() == 0
        found = fw.maximize(problem, solver=DESCENT, x0=near)
        assert found.value.item() == pytest.approx(0.5)
