"""A space of one's own: what it says is enough for the rest."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from facetwalk.spaces import Box, Intersection, Space
from facetwalk.streams import Streams


@dataclass(frozen=True, eq=False)
class Simplex(Space):
    """Points with no negative coordinate whose sum is `total`, `(B, 1)`."""

    total: Tensor
    n: int

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.n,)

    @property
    def center(self) -> Tensor:
        return (self.total / self.n).expand(-1, self.n)

    @property
    def radius(self) -> Tensor:
        return self.total

    def project(self, x: Tensor) -> Tensor:
        high = x.sort(dim=1, descending=True).values
        excess = (high.cumsum(1) - self.total) / torch.arange(1, self.n + 1)
        last = (high > excess).sum(1, keepdim=True) - 1
        return (x - excess.gather(1, last)).clamp_min(0)


@pytest.fixture
def simplex() -> Simplex:
    return Simplex(torch.tensor([[1.0], [4.0]], dtype=torch.float64), 3)


def test_a_space_of_ones_own_samples_inside_itself(simplex):
    streams = Streams(torch.arange(2))
    points = simplex.sample(streams)
    assert points.min() >= 0
    torch.testing.assert_close(points.sum(1), simplex.total[:, 0])
    assert (points != simplex.sample(streams.fold(1))).any(1).all()


def test_a_space_of_ones_own_knows_its_points(simplex):
    inside = torch.tensor([[0.2, 0.3, 0.5], [4.0, 0.0, 0.0]], dtype=torch.float64)
    assert simplex.contains(inside).tolist() == [True, True]
    assert simplex.contains(inside.flip(0)).tolist() == [False, False]
    assert simplex.contains(inside - 0.01).tolist() == [False, False]


def test_a_space_of_ones_own_is_selected_moved_and_counted(simplex):
    assert simplex.count == 2
    second = simplex.select(torch.tensor([1])).to(torch.device("cpu"), torch.float32)
    assert isinstance(second, Simplex)
    assert second.project(torch.zeros(1, 3)).tolist() == [pytest.approx([4 / 3] * 3)]


def test_a_space_of_ones_own_ascends_by_the_signs(simplex):
    gradient = torch.tensor([[0.1, -3.0, 0.0], [-2.0, 1.0, 5.0]])
    assert simplex.ascent(gradient).tolist() == [[1.0, -1.0, 0.0], [-4.0, 4.0, 4.0]]


def test_a_space_of_ones_own_has_the_scale_of_a_box(simplex):
    torch.testing.assert_close(simplex.scale, simplex.radius * 3**0.5)


def test_a_space_of_ones_own_intersects_with_a_box():
    simplex = Simplex(torch.ones(1, 1, dtype=torch.float64), 3)
    capped = Intersection(simplex, Box(torch.zeros(3), torch.full((3,), 0.5)))
    x = torch.tensor([[2.0, 0.1, 0.0]], dtype=torch.float64)
    expected = torch.tensor([[0.5, 0.3, 0.2]], dtype=torch.float64)
    torch.testing.assert_close(capped.project(x), expected, rtol=0, atol=1e-5)
