"""Traps on functions whose hills are known."""

import pytest
import torch
from torch import Tensor, nn

from facetwalk.experiments.landscape.networks import Extremes
from facetwalk.experiments.landscape.traps import LAST, NEAR, find_traps, local_maximum


class Tents(nn.Module):
    """The higher of two tents: 1 at (-0.5, 0) and `height` at (0.5, 0), slopes 2 along x."""

    def __init__(self, height: float) -> None:
        super().__init__()
        self.height = height
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        def size(z: Tensor) -> Tensor:
            return torch.relu(z) + torch.relu(-z)

        low = 1 - 2 * size(x[:, :1] + 0.5) - size(x[:, 1:])
        high = self.height - 2 * size(x[:, :1] - 0.5) - size(x[:, 1:])
        return low + torch.relu(high - low)


def at(*entries: float) -> Tensor:
    return torch.tensor(entries, dtype=torch.float64)


def test_a_local_maximum_is_found_where_it_is():
    proof = local_maximum(Tents(2.0), at(-0.45, 0.05))
    assert proof is not None
    assert proof.x.tolist() == pytest.approx([-0.5, 0.0], abs=1e-5)
    assert proof.value == pytest.approx(1.0, abs=1e-5)


def test_a_slope_is_no_local_maximum():
    assert local_maximum(Tents(2.0), at(0.1, 0.5)) is None


def test_a_maximum_at_the_edge_of_the_square_counts():
    class Wall(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x[:, :1] - torch.relu(x[:, 1:]) - torch.relu(-x[:, 1:])

    proof = local_maximum(Wall().eval(), at(0.95, 0.03))
    assert proof is not None
    assert proof.x.tolist() == pytest.approx([1.0, 0.0], abs=1e-5)


def test_walks_that_stay_below_the_maximum_are_traps():
    tents, around = Tents(2.0), 0.9 * NEAR * torch.linspace(-1, 1, LAST, dtype=torch.float64)
    zeros = torch.zeros_like(around)
    walks = [
        torch.stack([-0.5 + around, zeros], 1),
        torch.stack([0.5 + around, zeros], 1),
        torch.stack([-0.5 + 2 * around, zeros], 1),
    ]
    last = torch.stack(walks, 1)
    values = torch.stack([tents(points)[:, 0] for points in walks], 1)
    (trap,) = find_traps([tents], [Extremes.of(tents)], last, values)
    assert trap.number == 0
    assert trap.x.tolist() == pytest.approx([-0.5, 0.0], abs=1e-5)
    assert trap.value == pytest.approx(1.0, abs=1e-5)
    assert trap.inside
    # The lowest point is a corner on the left: 1 - 2 * 0.5 - 1, or the valley between the tents.
    lowest = Extremes.of(tents).lowest
    assert trap.share == pytest.approx((1 - lowest) / (2 - lowest), abs=1e-5)


def test_of_two_hills_of_one_height_none_is_a_trap():
    tents, around = Tents(1.0), 0.05 * torch.linspace(-1, 1, LAST, dtype=torch.float64)
    points = torch.stack([-0.5 + around, torch.zeros_like(around)], 1)
    values = tents(points)
    assert not find_traps([tents], [Extremes.of(tents)], points[:, None], values - 0.5)
