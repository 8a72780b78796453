"""alpha* against bisection along the step, flips against patterns compared neuron by neuron."""

import pytest
import torch
from plain_network import PlainNetwork

from facetwalk.experiments.gradients.facets import look_at_steps
from facetwalk.experiments.gradients.walks import Walk
from facetwalk.zoo import StackedNetworks, random_network

SIZES = (3, 6, 5, 1)


def points(count: int, seed: int) -> torch.Tensor:
    """Points of a walk, some of whose steps are tiny."""
    generator = torch.Generator().manual_seed(seed)
    moves = torch.randn(count, 1, 3, dtype=torch.float64, generator=generator)
    moves *= torch.logspace(-2.5, 0, count, dtype=torch.float64).view(-1, 1, 1)
    return moves.cumsum(0)


def first_change(plain: PlainNetwork, x: list[float], move: list[float]) -> float:
    """The share of a step after which the pattern first differs, by bisection; at most 2^20."""

    def changed(share: float) -> bool:
        there = [a + share * b for a, b in zip(x, move, strict=True)]
        return plain.pattern(there) != plain.pattern(x)

    high = next((2.0**k for k in range(-20, 21) if changed(2.0**k)), None)
    if high is None:
        return float("inf")
    low = 0.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if changed(middle) else (middle, high)
    return high


@pytest.mark.parametrize("seed", range(4))
def test_steps_are_measured_as_bisection_measures_them(seed):
    network = random_network(SIZES, seed).double()
    plain, x = PlainNetwork(network), points(9, seed)
    with torch.no_grad():
        steps = look_at_steps(network, Walk(x, network(x[:, 0])))
    found = set()
    for t, (here, there) in enumerate(zip(x[:-1, 0].tolist(), x[1:, 0].tolist(), strict=True)):
        move = [b - a for a, b in zip(here, there, strict=True)]
        share = first_change(plain, here, move)
        assert steps.ratio[t, 0].item() == pytest.approx(1 / share, rel=1e-6)
        before, after = plain.pattern(here), plain.pattern(there)
        flips = sum(a != b for a, b in zip(before, after, strict=True))
        assert steps.flips[t, 0] == flips
        assert steps.left[t, 0] == (flips > 0) == (share < 1)
        assert steps.lost[t, 0] == (plain.run(there)[0] < plain.run(here)[0])
        found.add(flips > 0)
    assert found == {True, False}


def test_networks_side_by_side_are_networks_alone():
    nets = [random_network(SIZES, seed).double() for seed in range(2)]
    x = torch.cat([points(6, 0), points(6, 1)], 1)
    values = torch.zeros(6, 2, dtype=torch.float64)
    together = look_at_steps(StackedNetworks(nets), Walk(x, values))
    for number, net in enumerate(nets):
        alone = look_at_steps(net, Walk(x[:, number : number + 1], values[:, :1]))
        torch.testing.assert_close(together.ratio[:, number], alone.ratio[:, 0])
        assert torch.equal(together.flips[:, number], alone.flips[:, 0])


def test_who_stands_still_is_not_counted():
    network = random_network(SIZES, 0).double()
    x = torch.zeros(3, 1, 3, dtype=torch.float64)
    x[2] = 1.0
    steps = look_at_steps(network, Walk(x, torch.zeros(3, 1, dtype=torch.float64)))
    for each in (steps.ratio, steps.flips, steps.left, steps.lost):
        assert each.isnan().flatten().tolist() == [True, False]
