"""Boxes: how many are bounded at once, which inputs are cut, and when there is no more to gain."""

import pytest
import torch
from small_networks import network
from torch import nn

import facetwalk as fw
from facetwalk import exact
from facetwalk.exact import boxes
from facetwalk.objectives import Output


def alike(bends):
    """Minus `0.4 + |x| - |x|` of one of three inputs, written so that linear bounds do not see it:
    over [-1, 1] they lie flat at 0, and owe nothing to any input.
    """
    net = nn.Sequential(
        *(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1), nn.ReLU(), nn.Linear(1, 1))
    ).double()
    numbers = {
        0: (torch.zeros(4, 3), torch.tensor([0.0, 0.0, 0.0, 5.0])),
        2: (torch.tensor([[2.0, -1.0, -1.0, -1.0]]), torch.tensor([5.4])),
        4: (torch.tensor([[-1.0]]), torch.zeros(1)),
    }
    numbers[0][0][:, bends] = torch.tensor([1.0, 1.0, -1.0, 1.0])
    for place, (weight, bias) in numbers.items():
        net[place].weight.data.copy_(weight)
        net[place].bias.data.copy_(bias)
    return net.eval()


@pytest.mark.parametrize("bends", range(3))
def test_inputs_that_only_deep_neurons_owe_something_to_are_cut(bends):
    space = fw.Box(-1, 1, shape=(3,))
    proof = exact.maximize(alike(bends), space, Output(0), engine="boxes", time_limit=20)
    assert proof.proven
    assert proof.value == pytest.approx(-0.4)
    assert proof.nodes < 100


@pytest.mark.parametrize("widths", [(6,), (6, 5)])
def test_the_search_ends_where_rounding_alone_is_more_than_the_gap(widths):
    net, space = network(2, *widths, 1, seed=3), fw.Box(-1, 1, shape=(2,))
    wide = exact.maximize(net, space, Output(0), engine="boxes", gap=1e-6)
    fine = exact.maximize(net, space, Output(0), engine="boxes", gap=1e-13, time_limit=None)
    assert fine.value == pytest.approx(wide.value, abs=1e-6)
    assert 1e-13 < fine.bound - fine.value < 1e-7
    assert not fine.proven


def test_a_gpu_with_little_memory_gets_fewer_boxes_at_once(monkeypatch):
    free = {"bytes": 100 * 2**30}
    monkeypatch.setattr(boxes, "make_room", lambda device: free["bytes"])
    gpu = torch.device("cuda")
    assert boxes._numbers_at_once(gpu) == 2**27
    free["bytes"] = 8 * 2**30
    assert boxes._numbers_at_once(gpu) == 2**24
    assert boxes._numbers_at_once(torch.device("cpu")) == 2**19
