"""The program keeps its digits, however large or small the numbers of a network are."""

import math
import time

import pytest
import torch
from small_networks import brute_force, network
from torch import nn

import facetwalk as fw
from facetwalk import exact
from facetwalk.exact.backward_bounds import backward_bounds
from facetwalk.exact.dense import Dense
from facetwalk.exact.graph import Graph
from facetwalk.exact.milp import search_milp
from facetwalk.exact.proof import Search
from facetwalk.objectives import Output


def scaled(net, of_input, *factors):
    """The same function of `x / of_input` times all factors, with each layer in its own unit."""
    layers = [layer for layer in net if isinstance(layer, nn.Linear)]
    unit = 1.0
    for layer, factor in zip(layers, factors, strict=True):
        unit *= factor
        layer.weight.data *= factor
        layer.bias.data *= unit
    layers[0].weight.data /= of_input
    return net


@pytest.mark.parametrize(
    ("of_input", "factors"),
    [
        (1.0, (1e-5, 1e-5, 1e10)),
        (1.0, (1e-8, 1.0, 1e8)),
        (1e6, (1e6, 1e-6, 1.0)),
        (1e-6, (1.0, 1e6, 1e-6)),
        (1e-6, (1e6, 1e6, 1.0)),
        (1e6, (1e-6, 1e-6, 1.0)),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_units_change_nothing(of_input, factors, seed):
    net = network(2, 4, 3, 1, seed=seed).double()
    right = brute_force(net, -1, 1, torch.eye(1)[0].double().numpy())
    unit = math.prod(factors)
    space = fw.Box(-of_input, of_input, shape=(2,))
    proof = exact.maximize(
        scaled(net, of_input, *factors), space, Output(0), engine="milp", gap=1e-3 * unit
    )
    assert proof.proven
    assert proof.value / unit - 1e-6 <= right <= proof.bound / unit + 1e-9


@pytest.mark.parametrize("seed", range(8))
def test_its_points_lie_in_the_box_to_the_last_digit(seed):
    low = torch.randn(4, generator=torch.Generator().manual_seed(seed)).double() / 3
    space = fw.Box(low, low + 0.1)
    proof = exact.maximize(network(4, 6, 1, seed=seed), space, Output(0), engine="milp", gap=1e-5)
    assert bool((proof.x >= low).all() & (proof.x <= low + 0.1).all())


def test_sides_without_length_are_no_variables():
    net = network(3, 6, 4, 1, seed=2)
    space = fw.Box(torch.tensor([-1.0, 0.5, -1.0]), torch.tensor([1.0, 0.5, -1.0]))
    line = torch.linspace(-1, 1, 10_001).double()
    points = torch.stack([line, torch.full_like(line, 0.5), torch.full_like(line, -1.0)], 1)
    best = net(points).max().item()
    proof = exact.maximize(net, space, Output(0), engine="milp", gap=1e-4)
    assert proof.proven
    assert proof.x[1:].tolist() == [0.5, -1.0]
    assert best <= proof.bound <= best + 2e-3


def test_points_on_the_way_are_offered_as_they_are_found():
    net = network(5, 14, 10, 1, seed=1)
    graph = Graph.of(net, (5,))
    one, tried, said = torch.ones(5, dtype=torch.float64), [], []
    bounds = backward_bounds(graph, -one, one)

    def evaluate(points):
        tried.append(points)
        return net(points)[:, 0]

    search = Search(
        x=0 * one,
        value=net(0 * one[None]).item(),
        bound=bounds.outputs.item(),
        gap=1e-3,
        threshold=None,
        evaluate=evaluate,
        began=time.perf_counter(),
        deadline=math.inf,
        report=said.append,
    )
    search_milp(Dense.of(graph), -one, one, bounds, search)
    points = torch.cat(tried)
    assert len(points) > 1  # one is that of the end
    assert (points.abs() <= 1).all()
    assert search.value == net(points).max().item()
    values = [float(line.split()[1].rstrip(",")) for line in said]
    assert values == sorted(values)
    assert len(set(values)) > 2
