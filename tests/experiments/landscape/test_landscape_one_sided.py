"""One-sided gradients against gradients on each side, and what following them gains."""

import torch
from torch import Tensor, nn

from facetwalk.experiments.landscape.networks import LARGE, networks
from facetwalk.experiments.landscape.one_sided import (
    FacetPoint,
    facet_points,
    search_hyperplanes,
    values_after,
)
from facetwalk.sites import discover

SHORT = 1e-7


def points_of(network: nn.Sequential, count: int) -> list[FacetPoint]:
    generator = torch.Generator().manual_seed(0)
    starts = 2 * torch.rand(count, 2, dtype=torch.float64, generator=generator) - 1
    return facet_points(network, starts)


def value(network: nn.Sequential, x: Tensor) -> float:
    with torch.no_grad():
        return network(x[None]).item()


def differences(network: nn.Sequential, x: Tensor) -> Tensor:
    """The gradient by central differences."""
    every = SHORT * torch.eye(2, dtype=torch.float64)
    slopes = [(value(network, x + e) - value(network, x - e)) / (2 * SHORT) for e in every]
    return torch.tensor(slopes, dtype=torch.float64)


def test_gradients_are_those_of_the_two_sides():
    for network in networks(LARGE, 3):
        found = points_of(network, 12)
        assert len(found) > 6
        for point in found:
            off = 10 * SHORT * point.normal / point.normal.norm()
            for side, gradient in ((-off, point.minus), (off, point.plus)):
                torch.testing.assert_close(
                    differences(network, point.x + side), gradient, rtol=0, atol=1e-5
                )


def test_the_neuron_is_zero_there_and_torch_takes_it_for_dead():
    for network in networks(LARGE, 2):
        for point in points_of(network, 8):
            sites = discover(network, point.x[None])
            h = sites.join(sites.pre_activations(point.x[None])[1])[0, point.neuron].item()
            assert -1e-10 < h <= 0
            leaf = point.x[None].clone().requires_grad_()
            (autograd,) = torch.autograd.grad(network(leaf).sum(), leaf)
            torch.testing.assert_close(autograd[0], point.minus)


def test_misled_is_where_a_short_step_along_the_other_gradient_gains_more():
    seen = set()
    for network in networks(LARGE, 8):
        for point in points_of(network, 60):
            minus, plus = values_after(network, point, SHORT)
            crosses = (point.minus @ point.normal > 0).item()
            better = plus - minus > 1e-14 and not crosses
            assert point.misled == better
            seen.add(point.misled)
    assert seen == {True, False}


def test_the_search_counts_what_it_sees():
    record = search_hyperplanes(4, 25)
    assert 50 < record["points"] <= 100
    assert 0 < record["better_after_a_step"] <= record["misled"] < record["points"]
    picture = record["picture"]
    assert picture["autograd"] == picture["minus"]
    assert picture["after_plus"] > picture["after_minus"]
