"""Optimised slopes: bounds between the truth and the plain ones, and the derivative behind them."""

import math
import time
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_networks import brute_force, network, residual
from torch import nn

from facetwalk.exact.backward_bounds import backward_bounds
from facetwalk.exact.graph import Graph
from facetwalk.exact.proof import Search
from facetwalk.exact.relaxed import Relaxed
from facetwalk.exact.slopes import least_bounds, slope_gradients
from facetwalk.exact.tightening import tighten_goals, tighten_neurons


def box(inputs, low=-1.0, high=1.0):
    ones = torch.ones(inputs, dtype=torch.float64)
    return low * ones, high * ones


def search_for(bounds, *, aim=-math.inf, seconds=60.0):
    """A search that knows a bound and no point."""
    now = time.perf_counter()
    return Search(
        x=torch.zeros(0),
        value=-math.inf,
        bound=bounds.outputs.max().item(),
        gap=1e-3,
        threshold=aim,
        evaluate=lambda points: points[:, 0],
        began=now,
        deadline=now + seconds,
        report=lambda *_: None,
    )


def optimised(graph, low, high):
    """Plain bounds, those with slopes of the goals, and those with slopes of the neurons."""
    plain = backward_bounds(graph, low, high)
    search = search_for(plain)
    goals = tighten_goals(graph, low, high, plain, search)
    neurons = tighten_neurons(graph, low, high, goals, search)
    assert search.bound == neurons.outputs.max()
    return plain, goals, neurons


def relaxed_over(graph, low, high):
    """Lines around all hinges, by plain bounds."""
    bounds = backward_bounds(graph, low, high)
    relaxed = Relaxed(graph, (low + high) / 2, (high - low) / 2)
    for below, above in zip(bounds.low, bounds.high, strict=True):
        relaxed.learn(below, above)
    return relaxed


@settings(max_examples=25, derandomize=True, deadline=None, database=None)
@given(
    seed=st.integers(0, 10**6),
    inputs=st.integers(1, 3),
    widths=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    low=st.floats(-1.5, 0.2),
)
def test_bounds_lie_between_the_maximum_and_the_plain_bounds(seed, inputs, widths, low):
    net = network(inputs, *widths, 2, seed=seed)
    plain, goals, neurons = optimised(Graph.of(net, (inputs,)), *box(inputs, low))
    assert (goals.outputs <= plain.outputs).all()
    assert (neurons.outputs <= goals.outputs).all()
    for site in range(len(widths)):
        assert (neurons.low[site] >= plain.low[site]).all()
        assert (neurons.high[site] <= plain.high[site]).all()
    for goal in range(2):
        right = brute_force(net, low, 1.0, torch.eye(2)[goal].numpy())
        assert right <= neurons.outputs[goal].item() + 1e-7


def test_a_bound_that_is_known_by_hand():
    # 0.6 x - max(x + y, 0) - max(x - y, 0) over [-1, 1]^2: with slopes s and t below the hinges it
    # is at most (0.6 - s - t) x + (t - s) y, so the bound is |0.6 - s - t| + |t - s|. Plain slopes
    # are 0 here, which gives 0.6; the best are 0.3, which gives 0, the value at 0.
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)).double().eval()
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[1.0, 1.0], [1.0, -1.0], [1.0, 0.0]]))
        net[0].bias.copy_(torch.tensor([0.0, 0.0, 1.0]))
        net[2].weight.copy_(torch.tensor([[-1.0, -1.0, 0.6]]))
        net[2].bias.fill_(-0.6)
    graph = Graph.of(net, (2,))
    plain, goals, _ = optimised(graph, *box(2))
    assert plain.outputs.item() == pytest.approx(0.6, abs=1e-6)
    assert 0 <= goals.outputs.item() < 0.1
    row = torch.ones(1, 1, dtype=torch.float64)
    best = least_bounds(relaxed_over(graph, *box(2)), -1, row, plain.outputs, steps=100)
    assert best.item() == pytest.approx(0.0, abs=1e-4)


@pytest.mark.parametrize(
    "make", [lambda: (network(3, 6, 5, 4, 3), (3,)), lambda: (residual(), (1, 4, 4))]
)
@pytest.mark.parametrize("position", [-1, 1])
def test_derivatives_are_finite_differences(make, position):
    net, shape = make()
    graph = Graph.of(net, shape)
    relaxed = relaxed_over(graph, *box(torch.Size(shape).numel(), -0.4, 0.5))
    width = graph.outputs if position == -1 else graph.widths[position]
    sites = len(graph.widths) if position == -1 else position
    random = torch.Generator().manual_seed(0)
    rows = torch.randn(3, width, generator=random, dtype=torch.float64)
    pulled = graph.pull_back(position, rows)
    slopes = [torch.rand(3, w, generator=random, dtype=torch.float64) for w in graph.widths[:sites]]

    def at(slopes):
        lines = [
            line._replace(lower=lower)
            for line, lower in zip(relaxed.lines[:sites], slopes, strict=True)
        ]
        return replace(relaxed, lines=lines)

    found = slope_gradients(at(slopes), position, at(slopes).above(pulled))
    assert len(found) == sites
    for site in range(sites):
        direction = torch.randn(slopes[site].shape, generator=random, dtype=torch.float64)
        ends = []
        for sign in (-1, 1):
            moved = list(slopes)
            moved[site] = slopes[site] + sign * 1e-7 * direction
            ends.append(at(moved).above(pulled).bound)
        expected = (ends[1] - ends[0]) / 2e-7
        assert torch.allclose((found[site] * direction).sum(1), expected, atol=1e-5, rtol=1e-4)


def test_bounds_of_a_residual_network_hold_and_are_lower():
    graph = Graph.of(residual(), (1, 4, 4))
    low, high = box(16)
    plain, goals, neurons = optimised(graph, low, high)
    assert (goals.outputs < plain.outputs).all()
    assert (neurons.outputs < goals.outputs).all()
    assert neurons.unstable <= plain.unstable
    random = torch.rand(5000, 16, generator=torch.Generator().manual_seed(0)).double()
    points = (low + (high - low) * random).view(-1, 1, 4, 4)
    output, seen = graph.sites.pre_activations(points)
    assert (output <= neurons.outputs).all()
    for below, z, above in zip(neurons.low, seen, neurons.high, strict=True):
        assert (below <= z.flatten(1)).all()
        assert (z.flatten(1) <= above).all()


def test_rows_do_not_know_of_each_other():
    graph = Graph.of(network(3, 8, 8, 4, seed=2), (3,))
    relaxed = relaxed_over(graph, *box(3))
    rows, unknown = torch.eye(4, dtype=torch.float64), torch.full((4,), math.inf).double()
    together = least_bounds(relaxed, -1, rows, unknown, steps=10)
    for k in range(4):
        alone = least_bounds(relaxed, -1, rows[k, None], unknown[k, None], steps=10)
        assert alone.item() == pytest.approx(together[k].item(), abs=1e-9)


def test_work_ends_at_the_aim_and_at_the_deadline():
    graph = Graph.of(network(3, 8, 8, 4, seed=2), (3,))
    low, high = box(3)
    plain, goals, _ = optimised(graph, low, high)
    aim = ((plain.outputs + goals.outputs) / 2).max().item()
    enough = tighten_goals(graph, low, high, plain, search_for(plain, aim=aim))
    assert goals.outputs.max() < enough.outputs.max() <= aim
    below = plain.outputs <= aim
    assert torch.equal(enough.outputs[below], plain.outputs[below])
    late = search_for(plain, seconds=-1.0)
    late = tighten_neurons(graph, low, high, plain, late)
    assert torch.equal(late.outputs, plain.outputs)
    assert all(map(torch.equal, late.high, plain.high))
