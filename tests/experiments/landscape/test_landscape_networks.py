"""Networks in records, their extremes and their polytopes, against grids."""

import json

import pytest
import torch
from torch import nn

from facetwalk.experiments.landscape.networks import LARGE, SMALL, Extremes, networks, read, written
from facetwalk.experiments.landscape.patterns import find_patterns, grid, polytopes, shares


def test_a_network_survives_json():
    (network,) = networks(LARGE, 1)
    again = read(json.loads(json.dumps(written(network))))
    with torch.no_grad():
        assert torch.equal(again(grid(21)), network(grid(21)))


def test_extremes_are_those_of_a_grid():
    for network in networks(LARGE, 3):
        known = Extremes.of(network)
        with torch.no_grad():
            values = network(grid(201))[:, 0]
            there = network(known.highest.x[None]).item()
        assert there == pytest.approx(known.highest.value, abs=1e-12)
        room = 0.02 * (values.max() - values.min()).item()
        assert 0 <= known.highest.bound - values.max() <= room
        assert 0 <= values.min() - known.lowest + 1e-9 <= room
        assert known.share(torch.tensor([known.lowest, known.highest.value])).tolist() == [0, 1]


def by_hand(network: nn.Sequential, side: int = 51) -> list[float]:
    """Shares of the vectors of signs on a grid."""
    with torch.no_grad():
        signs = grid(side) @ network[0].weight.T + network[0].bias > 0
    codes = signs.long() @ torch.tensor([1, 2, 4])
    counts = torch.bincount(codes, minlength=8)
    return (counts[counts > 0] / len(codes)).tolist()


def test_polytopes_are_vectors_of_signs():
    for network in networks(SMALL, 4):
        assert sorted(shares(network)) == sorted(by_hand(network))


def test_no_polytope_is_overlooked():
    nets = networks(SMALL, 30)
    counted, seen = [polytopes(net) for net in nets], [len(by_hand(net, 401)) for net in nets]
    assert all(few <= every for few, every in zip(seen, counted, strict=True))
    assert sum(few == every for few, every in zip(seen, counted, strict=True)) >= 28
    assert len(set(counted)) > 3


def test_panel_a_has_five_polytopes_and_is_the_first_such_network():
    record = find_patterns()
    assert len(record["shares"]) == 5
    assert min(record["shares"]) >= 0.03
    assert sum(record["shares"]) == pytest.approx(1, abs=1e-6)
    for earlier in networks(SMALL, record["seed"]):
        found = by_hand(earlier, 201)
        assert len(found) != 5 or min(found) < 0.031
