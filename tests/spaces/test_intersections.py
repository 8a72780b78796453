"""Intersections: what follows from their members."""

import math

import pytest
import torch
from space_cases import EPS, seeded_case
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from facetwalk.batching import row_norm
from facetwalk.spaces import Box, Intersection, L1Ball, L2Ball, LinfBall, Space


@pytest.mark.parametrize("ball", [L2Ball, L1Ball])
def test_intersection_with_a_box_is_the_ball_in_bounds(ball):
    case = seeded_case(f"{ball.__name__} & Box", seed=5, problems=40, n=8, reach=2.0)
    (_, centers, eps), *_ = case.balls
    exact = ball(centers, eps, bounds=(case.low, case.high)).project(case.x)
    torch.testing.assert_close(case.space.project(case.x), exact, rtol=0, atol=1e-4)


def test_ascent_of_an_intersection_uses_the_smaller_set_of_each_problem():
    gradient = torch.tensor([[3.0, 4.0], [3.0, 4.0]])
    ball = L2Ball(torch.zeros(2, 2), torch.tensor([0.1, 10.0]))
    space = Intersection(ball, Box(-1, 1, shape=(2,)))
    torch.testing.assert_close(space.ascent(gradient), torch.tensor([[0.06, 0.08], [1.0, 1.0]]))


def test_intersection_reaches_as_far_as_its_smallest_member():
    space = Intersection(L2Ball(torch.zeros(2, 3), EPS), Box(-1, 1, shape=(3,)))
    assert space.radius.expand(2, 3).tolist() == [[0.5] * 3, [1.0] * 3]
    assert (space.shape, space.count) == ((3,), 2)


def test_scale_of_an_intersection_is_the_smallest_in_each_coordinate():
    box = Box(torch.tensor([-1.0, -0.2]), torch.tensor([1.0, 0.2]))
    space = Intersection(L2Ball(torch.zeros(1, 2), 0.5), box)
    torch.testing.assert_close(space.scale, torch.tensor([[0.5, 0.2]]) * 2**0.5)


def test_intersection_starts_from_a_common_point():
    space = Intersection(L2Ball(torch.zeros(1, 2), 1.0), Box(0.5, 3, shape=(2,)))
    start = space.center[0]
    assert start.norm() <= 1 + 1e-6
    assert (start >= 0.5).all()


IMAGES = torch.rand(8, 3, 32, 32, generator=torch.Generator().manual_seed(2))
UNIT_BOX = Box(0, 1, shape=IMAGES.shape[1:])


def noisy(images: Tensor, size: float) -> Tensor:
    return images + size * torch.randn(images.shape, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("reach", [0.03, 1.0, 30.0])
@pytest.mark.parametrize(
    ("wide", "eps", "total"),
    [
        (math.inf, 1.0, 40.0),
        (math.inf, 0.5, 12.0),
        (math.inf, 0.5, 1.5),
        (math.inf, 0.5, 1000.0),
        (0.03, 1.0, 40.0),
        (0.03, 0.5, 12.0),
    ],
)
def test_balls_around_one_image_meet_the_conditions_of_the_nearest_point(wide, eps, total, reach):
    """Karush's, Kuhn's and Tucker's: all entries that end between their bounds are shortened by
    one amount and shrunk by one factor, and a condition that has no part in it need not bind."""
    images = IMAGES.double()
    members = [L2Ball(images, eps), L1Ball(images, total), UNIT_BOX]
    if wide < math.inf:
        members.append(LinfBall(images, wide))
    x = noisy(images, reach)
    offset, z = x - images, Intersection(*members).project(x) - images
    room = torch.where(offset > 0, 1 - images, images).clamp_max(wide).flatten(1)
    size, short = offset.abs().flatten(1), (z * offset.sign()).flatten(1)
    assert short.min() >= -1e-15
    assert (short - room).max() <= 1e-12
    assert short.norm(dim=1).max() <= eps * (1 + 1e-12)
    assert short.sum(1).max() <= total * (1 + 1e-12)
    for row in range(len(x)):
        free = (short[row] > 1e-9) & (short[row] < room[row] - 1e-9)
        system = torch.stack([size[row], torch.ones_like(size[row])], 1)
        factor, lost = torch.linalg.lstsq(system[free], short[row][free, None]).solution[:, 0]
        again = (factor * size[row] + lost).clamp_min(0).minimum(room[row])
        torch.testing.assert_close(again, short[row], rtol=0, atol=1e-8)
        assert factor <= 1 + 1e-9
        assert lost <= 1e-9
        assert lost > -1e-9 or short[row].sum() == pytest.approx(total, rel=1e-9)
        assert factor > 1 - 1e-9 or short[row].norm() == pytest.approx(eps, rel=1e-9)


class Counting(TorchDispatchMode):
    operations = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.operations += 1
        return func(*args, **(kwargs or {}))


def operations(space: Space, x: Tensor) -> int:
    with Counting() as counting:
        space.project(x)
    return counting.operations


@pytest.mark.parametrize("reach", [0.01, 1.0, 100.0])
def test_balls_around_one_image_cost_some_twenty_projections_onto_one_of_them(reach):
    one, other = L2Ball(IMAGES, 1.0, bounds=(0, 1)), L1Ball(IMAGES, 40.0)
    x = noisy(IMAGES, reach)
    assert operations(Intersection(one, other), x) <= 25 * operations(one, x)


@pytest.mark.parametrize("reach", [0.1, 1.0, 10.0, 1000.0])
def test_other_intersections_end_inside_every_member(reach):
    image = torch.rand(6, 2, 8, 8, generator=torch.Generator().manual_seed(2))[[3]]
    others = {
        "another centre": (L2Ball(image, 1.0), L1Ball(image * 0.99, 8.0)),
        "a box beside the centre": (L2Ball(image, 1.0), Box(0.05, 1.05, shape=(2, 8, 8))),
        "two of each": (L2Ball(image, 1.0), L2Ball(image + 0.05, 1.0), L1Ball(image, 8.0)),
    }
    x = noisy(image.expand(5, 2, 8, 8), reach)
    for members in others.values():
        space = Intersection(*members, Box(0.0, 1.0, shape=(2, 8, 8)))
        projected = space.project(x)
        assert projected.min() >= 0
        assert projected.max() <= 1
        for member in members:
            assert member.contains(projected).all()
        assert (row_norm(projected - x) <= row_norm(space.center - x) * (1 + 1e-6)).all()
        alone = torch.cat([space.project(row[None]) for row in x])
        assert torch.equal(alone, projected)


def test_an_intersection_of_intersections_is_that_of_their_members():
    one, other = L2Ball(IMAGES, 1.0), L1Ball(IMAGES, 40.0)
    x = noisy(IMAGES, 1.0)
    nested = Intersection(Intersection(one, UNIT_BOX), other)
    assert torch.equal(nested.project(x), Intersection(one, other, UNIT_BOX).project(x))
