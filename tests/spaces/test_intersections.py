"""Intersections: what follows from their members."""

import pytest
import torch
from space_cases import EPS, seeded_case

from facetwalk.spaces import Box, Intersection, L1Ball, L2Ball


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
    space = Intersection(L2Ball(torch.zeros(1, 2), 1.0), box)
    torch.testing.assert_close(space.scale, torch.tensor([[1.0, 0.2 * 2**0.5]]))


def test_intersection_starts_from_a_common_point():
    space = Intersection(L2Ball(torch.zeros(1, 2), 1.0), Box(0.5, 3, shape=(2,)))
    start = space.center[0]
    assert start.norm() <= 1 + 1e-6
    assert (start >= 0.5).all()
