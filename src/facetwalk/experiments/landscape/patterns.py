"""Panel (a): a network with three hidden neurons whose square falls into five polytopes."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn

from facetwalk.experiments.experiment import Record
from facetwalk.experiments.landscape.networks import SMALL, Extremes, written
from facetwalk.sites import pattern
from facetwalk.zoo import random_network

POLYTOPES = 5
"""As in the paper's section 4."""
_SMALLEST = 0.03
"""Share of the square that every polytope has at least, so that it can be seen."""
_SIDE = 51


def grid(side: int = _SIDE) -> Tensor:
    """Points of the square, `(side * side, 2)`; the second coordinate is constant along rows."""
    line = torch.linspace(-1, 1, side, dtype=torch.float64)
    return torch.cartesian_prod(line, line).flip(1)


def shares(network: nn.Sequential) -> list[float]:
    """The share of the square that each pattern has, on a grid."""
    points = grid()
    (live,) = pattern(network, points).live
    counts = live.unique(dim=0, return_counts=True)[1]
    return (counts / len(points)).tolist()


def polytopes(network: nn.Sequential) -> int:
    """How many polytopes lines in general position make of the square: one, another for each line
    that crosses it, and another for each two that meet in it.

    >>> cross = nn.Sequential(nn.Linear(2, 2, dtype=torch.float64), nn.ReLU())
    >>> _ = cross[0].weight.data.copy_(torch.eye(2)), cross[0].bias.data.fill_(0.5)
    >>> polytopes(cross)
    4
    """
    layer = network[0]
    assert isinstance(layer, nn.Linear)
    weights, biases = layer.weight.detach(), layer.bias.detach()
    lines = int((biases.abs() < weights.abs().sum(1)).sum())
    meetings = 0
    for two in map(list, itertools.combinations(range(len(biases)), 2)):
        meets = torch.linalg.solve(weights[two], -biases[two])
        meetings += bool((meets.abs() < 1).all())
    return 1 + lines + meetings


def find_patterns() -> Record:
    """The first random network with so many polytopes, none of them tiny."""
    seed = next(seed for seed in itertools.count() if _is_clear(_network(seed)))
    network = _network(seed)
    return {
        "seed": seed,
        "searched": seed + 1,
        "shares": shares(network),
        "weights": written(network),
        "highest": Extremes.of(network).record(),
    }


def _network(seed: int) -> nn.Sequential:
    return random_network(SMALL, seed).double()


def _is_clear(network: nn.Sequential) -> bool:
    if polytopes(network) != POLYTOPES:
        return False
    found = shares(network)
    return len(found) == POLYTOPES and min(found) >= _SMALLEST
