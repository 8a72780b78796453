"""Activation patterns and first facets against networks written out by hand."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from facetwalk.sites import discover, first_facet, pattern, pattern_of, tangents
from facetwalk.types import InputError
from facetwalk.zoo import random_network

SIZES = (5, 8, 7, 6, 1)
seeds = st.integers(0, 10**6)


def net(seed: int = 0, sizes: tuple[int, ...] = SIZES) -> nn.Sequential:
    return random_network(sizes, seed).double()


def conv_net() -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers = [nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Conv2d(3, 4, 2, stride=2), nn.ReLU()]
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(16, 1)).double().eval()


def normal(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def signs(model: nn.Sequential, x: Tensor) -> list[Tensor]:
    """The pattern, one layer after the other."""
    live = []
    with torch.no_grad():
        for layer in model:
            if isinstance(layer, nn.ReLU):
                live.append(x > 0)
                x = x * (x > 0)
            else:
                x = layer(x)
    return live


def differing(a: list[Tensor], b: list[Tensor]) -> list[int]:
    """Neurons that differ, row by row."""
    rows = range(len(a[0]))
    return [sum(int((p[i] != q[i]).sum()) for p, q in zip(a, b, strict=True)) for i in rows]


MODELS = {"fully connected": (net, (5,)), "conv": (conv_net, (1, 6, 6))}
every_model = pytest.mark.parametrize(("build", "shape"), MODELS.values(), ids=MODELS)


@every_model
def test_a_pattern_is_the_signs_of_the_pre_activations(build, shape):
    model, x = build(), normal(9, *shape)
    found = pattern(model, x)
    expected = signs(model, x)
    assert found.names == tuple(site.name for site in discover(model, x))
    assert len(list(found)) == len(expected)
    for live, by_hand in zip(found, expected, strict=True):
        assert live.dtype == torch.bool
        assert torch.equal(live, by_hand)
    assert found.count().tolist() == differing(expected, [torch.zeros_like(s) for s in expected])


def test_a_neuron_on_its_hyperplane_is_not_live():
    model = nn.Sequential(nn.Linear(1, 1, bias=False), nn.ReLU()).double().eval()
    x = torch.tensor([[0.0], [-0.0]], dtype=torch.float64)
    assert pattern(model, x).live[0].tolist() == [[False], [False]]


@every_model
def test_xor_counts_the_neurons_that_differ(build, shape):
    model, x, y = build(), normal(9, *shape), normal(9, *shape, seed=1)
    expected = differing(signs(model, x), signs(model, y))
    difference = pattern(model, x) ^ pattern(model, y)
    assert difference.count().tolist() == expected
    assert min(expected) > 0
    assert (pattern(model, x) ^ pattern(model, x)).count().tolist() == [0] * 9


def test_patterns_of_different_models_or_sites_cannot_be_compared():
    x = normal(2, 5)
    deep, shallow = pattern(net(), x), pattern(net(sizes=(5, 8, 1)), x)
    sites = discover(net(), x)
    last = pattern_of(sites.select("last"), sites.pre_activations(x)[1][-1:])
    for other in (shallow, last):
        with pytest.raises(InputError, match="cannot be compared"):
            deep ^ other


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gates_are_the_pattern_in_numbers(dtype):
    found = pattern(net(), normal(3, 5))
    for gate, live in zip(found.gates(dtype), found.live, strict=True):
        assert gate.dtype == dtype
        assert gate.tolist() == live.long().tolist()
    assert found.gates()[0].dtype == torch.float32


def assert_first_change(model: nn.Sequential, x: Tensor, direction: Tensor, step: Tensor) -> None:
    """Regions are convex: with the same pattern at `x` and just before, it is constant between."""
    finite = step.isfinite()
    assert finite.any()
    x, direction, step = x[finite], direction[finite], step[finite]
    assert (step >= 0).all()
    step = step.reshape(-1, *[1] * (x.ndim - 1))
    margin = 1e-9 * (1 + step)
    here = signs(model, x)
    assert set(differing(here, signs(model, x + (step - margin).clamp_min(0) * direction))) == {0}
    assert min(differing(here, signs(model, x + (step + margin) * direction))) >= 1


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seeds)
def test_the_first_facet_is_where_the_pattern_first_changes(seed):
    model, x, direction = net(seed), normal(16, 5, seed=seed), normal(16, 5, seed=seed + 1)
    assert_first_change(model, x, direction, first_facet(model, x, direction))


def test_the_first_facet_of_a_conv_net():
    model, x, direction = conv_net(), normal(16, 1, 6, 6), normal(16, 1, 6, 6, seed=1)
    assert_first_change(model, x, direction, first_facet(model, x, direction))


@pytest.mark.parametrize("seed", range(5))
def test_the_first_facet_is_what_a_bisection_finds(seed):
    model, x, direction = net(seed), normal(1, 5, seed=seed), normal(1, 5, seed=seed + 50)
    here = signs(model, x)

    def changed(step: float) -> bool:
        return differing(here, signs(model, x + step * direction)) != [0]

    low, high = 0.0, next(2.0**k for k in range(-30, 30) if changed(2.0**k))
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if changed(middle) else (middle, high)
    assert first_facet(model, x, direction).item() == pytest.approx(high, rel=1e-9)


def positive_net() -> nn.Sequential:
    """Every pre-activation is positive and grows with every input."""
    model = net()
    for parameter in model.parameters():
        parameter.data.abs_()
    return model


def test_there_may_be_no_facet_ahead():
    model, x = positive_net(), normal(4, 5).abs()
    direction = normal(4, 5, seed=1).abs()
    assert first_facet(model, x, direction).tolist() == [torch.inf] * 4
    assert first_facet(model, x, -direction).isfinite().all()
    assert first_facet(model, x, torch.zeros_like(x)).tolist() == [torch.inf] * 4


def test_a_facet_may_be_right_here():
    model = nn.Sequential(nn.Linear(1, 1, bias=False), nn.ReLU()).double().eval()
    model[0].weight.data.fill_(2.0)
    x = torch.zeros(2, 1, dtype=torch.float64)
    direction = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)
    assert first_facet(model, x, direction).tolist() == [0, torch.inf]


@pytest.mark.parametrize("factor", [1e-30, 1e-6, 3.0, 1e12])
def test_the_first_facet_is_measured_in_lengths_of_the_direction(factor):
    model, x, direction = net(), normal(16, 5), normal(16, 5, seed=1)
    expected = first_facet(model, x, direction) / factor
    torch.testing.assert_close(
        first_facet(model, x, factor * direction), expected, atol=0, rtol=1e-12
    )


def test_a_row_has_the_same_first_facet_alone():
    model, x, direction = net(), normal(6, 5), normal(6, 5, seed=1)
    together = first_facet(model, x, direction)
    alone = [first_facet(model, x[i : i + 1], direction[i : i + 1]) for i in range(6)]
    torch.testing.assert_close(torch.cat(alone), together)


@pytest.mark.parametrize("shape", [(1, 5), (5,), (3, 4), (3, 5, 1)])
def test_a_direction_of_another_shape_is_refused(shape):
    with pytest.raises(InputError, match="must be the same"):
        first_facet(net(), normal(3, 5), normal(*shape))


def gradient_of(model: nn.Module, x: Tensor) -> Tensor:
    leaf = x.clone().requires_grad_()
    return torch.autograd.grad(model(leaf).sum(), leaf)[0]


@every_model
def test_the_network_is_affine_up_to_the_first_facet(build, shape):
    model, x, direction = build(), normal(16, *shape), normal(16, *shape, seed=1)
    step = first_facet(model, x, direction).reshape(-1, *[1] * len(shape))
    assert step.isfinite().all()
    with torch.no_grad():
        start, end = model(x), model(x + step * direction)
        for share in (0.1, 0.5, 0.99):
            there = model(x + share * step * direction)
            torch.testing.assert_close(there, start.lerp(end, share), rtol=0, atol=1e-10)
        beyond = model(x + 50 * step * direction)
    assert (beyond - (start + 50 * (end - start))).abs().max() > 1e-3


@every_model
def test_ascent_along_the_gradient_improves_up_to_the_first_facet(build, shape):
    model, x = build(), normal(64, *shape)
    gradient = gradient_of(model, x)
    step = first_facet(model, x, gradient)
    rows = step.isfinite()
    x, gradient, step = x[rows], gradient[rows], step[rows].reshape(-1, *[1] * len(shape))
    with torch.no_grad():
        values = [model(x + share * step * gradient) for share in (0, 0.2, 0.6, 1)]
        beyond = [model(x + more * step * gradient) for more in (3, 30, 300)]
    for lower, higher in pairwise(values):
        assert (higher >= lower - 1e-12).all()
        assert (higher > lower).any()
    assert any((later < values[-1]).any() for later in beyond)


def transformer() -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.TransformerEncoderLayer(4, 2, 6, batch_first=True).double().eval()


class InPlace(nn.Module):
    """A ReLU on its own input, one on a view, and a shared one."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = net(0, (4, 6)), net(1, (6, 3))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        z = self.first(self.relu(x))
        z[:, :3].relu_()
        return self.second(F.leaky_relu(self.relu(z - 0.5), 0.1, inplace=True))


TANGENTS = MODELS | {
    "transformer": (transformer, (3, 4)),
    "in place": (lambda: InPlace().eval(), (4,)),
}


@pytest.mark.parametrize(("build", "shape"), TANGENTS.values(), ids=TANGENTS)
def test_tangents_are_derivatives_of_the_network_with_frozen_gates(build, shape):
    model, x, direction = build(), normal(3, *shape), normal(3, *shape, seed=1)
    sites = discover(model, x)
    gates = [normal(3, *site.shape, seed=2).sigmoid() for site in sites]
    found = tangents(sites, x, gates, direction)
    step = 1e-6

    def frozen(x: Tensor) -> list[Tensor]:
        return sites.gated(x, gates)[1]

    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        ahead, behind = frozen(x + step * direction), frozen(x - step * direction)
        _, by_jvp = torch.func.jvp(frozen, (x,), (direction,))
    for tangent, a, b, other in zip(found, ahead, behind, by_jvp, strict=True):
        assert tangent.abs().max() > 1e-2
        assert not tangent.requires_grad
        torch.testing.assert_close(tangent, (a - b) / (2 * step), rtol=0, atol=1e-7)
        torch.testing.assert_close(tangent, other, rtol=0, atol=1e-12)


def test_a_site_that_does_not_move_has_zero_tangents():
    model = net(sizes=(2, 3, 4, 1))
    x = normal(2, 2)
    sites = discover(model, x)
    gates = [torch.zeros(2, 3, dtype=x.dtype), torch.ones(2, 4, dtype=x.dtype)]
    first, second = tangents(sites, x, gates, torch.ones_like(x))
    torch.testing.assert_close(first, model[0].weight.sum(1).expand(2, 3))
    assert torch.equal(second, torch.zeros(2, 4, dtype=x.dtype))
