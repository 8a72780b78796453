"""Intervals: around whatever is sampled, never inside linear bounds of the first site, and known
values where they can be computed by hand."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_networks import network, residual
from torch import nn

from facetwalk.exact.backward_bounds import backward_bounds
from facetwalk.exact.graph import Graph
from facetwalk.exact.intervals import interval_bounds


def bounds_of(graph, low, high):
    """Bounds of every site and of the outputs, by intervals alone."""
    known = []
    for position in (*range(len(graph.widths)), -1):
        known.append(interval_bounds(graph, low, high, known, position))
    return known


def check_around_samples(net, shape, center, radius):
    graph = Graph.of(net, shape)
    low, high = center - radius, center + radius
    found = bounds_of(graph, low, high)
    inputs = torch.Size(shape).numel()
    random = torch.rand(2000, inputs, generator=torch.Generator().manual_seed(0)).double()
    corners = random.round()
    points = torch.cat([low + (high - low) * share for share in (random, corners)])
    output, seen = graph.sites.pre_activations(points.view(-1, *shape))
    for (below, above), z in zip(found, [*seen, output], strict=True):
        assert (below <= z.flatten(1)).all()
        assert (z.flatten(1) <= above).all()
        assert above.isfinite().all()
        assert below.isfinite().all()


class Signs(nn.Module):
    """Differences, constants of either sign, shortcuts in place, kin of ReLU, padding, parts."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(2, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.second = nn.Linear(4, 4)
        self.factors = nn.Buffer(torch.tensor([-2, 1, 3, -1]))

    def forward(self, x):
        x = 1 - (x - 0.3) / torch.tensor([-0.5, 0.7]).view(2, 1, 1).to(x)
        h = torch.relu_(self.norm(self.first(x)))
        h = nn.functional.pad(h, (1, 0, 0, 0), value=-0.4)
        h = nn.functional.avg_pool2d(h, 2).flip(1)
        h = h.mean((2, 3)) * self.factors * -1.5 / -0.7 - 0.5
        shortcut = h.clone()
        h = nn.functional.leaky_relu(self.second(h), 0.2)
        h += shortcut
        h *= -1
        h -= -2 * shortcut[:, [1, 0, 3, 2]]
        h = torch.cat([h[:, :2].abs(), -h[:, 2:].clamp(-1, 1), torch.ones_like(h[:, :1])], 1)
        return torch.stack([h.sum(1), -h[:, 0]], 1) @ torch.tensor([[1.0, -3], [2, 1]]).to(h)


def signs():
    with torch.random.fork_rng():
        torch.manual_seed(3)
        net = Signs()
        net.norm.running_mean.normal_()
        net.norm.running_var.uniform_(0.5, 2)
        net.norm.weight.data.normal_()
        return net.eval()


@settings(max_examples=25, derandomize=True, deadline=None, database=None)
@given(
    seed=st.integers(0, 10**6),
    widths=st.lists(st.integers(1, 7), min_size=1, max_size=3),
    radius=st.floats(0, 2),
)
def test_they_hold_whatever_the_network_computes(seed, widths, radius):
    center = torch.randn(3, generator=torch.Generator().manual_seed(seed)).double()
    check_around_samples(network(3, *widths, 2, seed=seed), (3,), center, radius)


@pytest.mark.parametrize(("make", "shape"), [(residual, (1, 4, 4)), (signs, (2, 5, 5))])
@pytest.mark.parametrize("radius", [1e-6, 0.1, 3.0])
def test_they_hold_for_every_operation(make, shape, radius):
    center = torch.randn(torch.Size(shape).numel(), generator=torch.Generator().manual_seed(1))
    check_around_samples(make(), shape, center.double(), radius)


def test_they_are_sums_of_absolute_values():
    net = network(4, 6, 5, 3, seed=2)
    low = torch.tensor([-1.0, 0.2, 0.0, -3.0], dtype=torch.float64)
    high = low + torch.tensor([0.5, 1.0, 0.0, 2.0], dtype=torch.float64)
    expected_low, expected_high = low, high
    linears = [part for part in net if isinstance(part, nn.Linear)]
    for linear, (below, above) in zip(
        linears, bounds_of(Graph.of(net, (4,)), low, high), strict=True
    ):
        rising, falling = linear.weight.double().clamp(min=0), linear.weight.double().clamp(max=0)
        ends = expected_low, expected_high
        lowest = rising @ ends[0] + falling @ ends[1] + linear.bias
        highest = rising @ ends[1] + falling @ ends[0] + linear.bias
        assert torch.allclose(below, lowest, atol=1e-9)
        assert torch.allclose(above, highest, atol=1e-9)
        expected_low, expected_high = lowest.clamp(min=0), highest.clamp(min=0)


def test_they_are_never_inside_linear_bounds_of_the_first_site():
    """Where only the input is seen, linear bounds are the true range but for rounding."""
    graph = Graph.of(residual(), (1, 4, 4))
    one = torch.ones(16, dtype=torch.float64)
    linear = backward_bounds(graph, -one, one)
    below, above = interval_bounds(graph, -one, one, [], 0)
    assert (below <= linear.low[0] + 1e-9).all()
    assert (above >= linear.high[0] - 1e-9).all()


class Accumulated(nn.Module):
    """A sum that the intervals do not follow: it grows in a tensor that began as zeros."""

    def forward(self, x):
        total = torch.zeros_like(x)
        total += x
        return torch.relu(total - 0.5) * 2


def test_what_they_do_not_follow_is_open_and_bounded_backward():
    graph = Graph.of(Accumulated().eval(), (3,))
    one = torch.ones(3, dtype=torch.float64)
    below, above = interval_bounds(graph, -one, one, [], 0)
    assert below.tolist() == [-math.inf] * 3
    assert above.tolist() == [math.inf] * 3
    bounds = backward_bounds(graph, -one, one, deadline=-math.inf)  # no time, and bounded still
    assert torch.allclose(bounds.outputs, one, atol=1e-9)
    assert torch.allclose(bounds.low[0], -1.5 * one, atol=1e-9)


def test_what_overflows_is_open():
    net = network(2, 3, 3, 1).double()
    net[2].weight.data.mul_(1e300)
    one = 1e30 * torch.ones(2, dtype=torch.float64)
    below, above = bounds_of(Graph.of(net, (2,)), -one, one)[1]
    assert not below.isfinite().any()
    assert not above.isfinite().any()
    assert not (below.isnan() | above.isnan()).any()


@pytest.mark.parametrize("seed", range(3))
def test_what_is_not_bounded_in_time_keeps_its_interval(seed):
    net = network(3, 12, 12, 2, seed=seed)
    graph = Graph.of(net, (3,))
    one = torch.ones(3, dtype=torch.float64)
    late, whole = (backward_bounds(graph, -one, one, deadline=d) for d in (-math.inf, math.inf))
    *sites, (_, outputs) = bounds_of(graph, -one, one)
    assert torch.equal(late.outputs, outputs)
    for site, (below, above) in enumerate(sites):
        assert torch.equal(late.low[site], below)
        assert torch.equal(late.high[site], above)
        assert (whole.low[site] >= below).all()
        assert (whole.high[site] <= above).all()
    assert (whole.outputs < late.outputs).all()
