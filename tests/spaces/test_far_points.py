"""Points so far away that their squares overflow have a nearest point all the same."""

import math

import pytest
import torch
from space_cases import BALLS

from facetwalk.spaces import Intersection, L1Ball, L2Ball, LinfBall

DIRECTION = torch.tensor([[3.0, -4.0, 0.0], [1.0, 1.0, 1.0]], dtype=torch.float64)
UNIT = {
    L2Ball: DIRECTION / DIRECTION.norm(dim=1, keepdim=True),
    L1Ball: torch.tensor([[0.0, -1.0, 0.0], [1 / 3] * 3], dtype=torch.float64),
}
REACH = {torch.float16: 1e4, torch.bfloat16: 1e37, torch.float32: 1e37, torch.float64: 1e300}


@pytest.mark.parametrize("dtype", REACH)
@pytest.mark.parametrize("ball", UNIT)
def test_the_nearest_point_of_a_far_one_lies_in_its_direction(ball, dtype):
    space = ball(torch.zeros(2, 3, dtype=dtype), 0.5)
    for far in (REACH[dtype], REACH[dtype] ** 0.5):
        x = (far * DIRECTION).to(dtype)
        assert not space.contains(x).any()
        projected = space.project(x)
        assert projected.dtype == dtype
        tolerance = 2 * torch.finfo(dtype).eps
        torch.testing.assert_close(projected.double(), 0.5 * UNIT[ball], rtol=tolerance, atol=1e-30)


@pytest.mark.parametrize("bounds", [None, (-0.2, 0.3)])
@pytest.mark.parametrize("dtype", REACH)
@pytest.mark.parametrize("ball", [LinfBall, L2Ball, L1Ball])
def test_infinite_points_project_into_the_ball(ball, dtype, bounds):
    x = torch.tensor([[math.inf, 0.0, 0.0], [-math.inf, 2.0, math.inf]], dtype=dtype)
    space = ball(torch.zeros(2, 3, dtype=dtype), 0.25, bounds)
    assert not space.contains(x).any()
    projected = space.project(x).double()
    lengths = torch.linalg.vector_norm(projected, BALLS[ball.__name__][1], dim=1)
    torch.testing.assert_close(lengths, torch.full_like(lengths, 0.25), rtol=1e-2, atol=0)
    assert projected.abs().max() <= 0.25
    assert ((projected.sign() == x.double().sign()) | (projected.abs() < 0.3)).all()


@pytest.mark.parametrize("other", [L1Ball(torch.zeros(1, 3), 0.6), L2Ball(torch.ones(1, 3), 1.5)])
def test_infinite_points_project_into_intersections(other):
    space = Intersection(L2Ball(torch.zeros(1, 3), 0.5), other)
    x = torch.tensor([[math.inf, 0.0, 0.0], [-math.inf, 2.0, math.inf], [1e30, 1e30, 1.0]])
    projected = space.project(x)
    assert torch.isfinite(projected).all()
    assert space.contains(projected).all()


def test_one_far_coordinate_at_its_bound_leaves_the_others_their_room():
    """As a step along an exploding gradient makes it."""
    ball = L2Ball(torch.zeros(1, 3), 0.5, bounds=(torch.full((3,), -1.0), torch.tensor([0, 1, 1])))
    projected = ball.project(torch.tensor([[1e25, 0.3, 0.9]]))
    expected = 0.5 * torch.tensor([[0.0, 0.3, 0.9]]) / math.hypot(0.3, 0.9)
    torch.testing.assert_close(projected, expected)


@pytest.mark.parametrize("ball", [L2Ball, L1Ball])
def test_tiny_balls_around_tiny_offsets_are_exact(ball):
    exact = ball(torch.zeros(2, 3, dtype=torch.float64), 1e-30)
    x = 1e-29 * DIRECTION
    projected = ball(torch.zeros(2, 3), 1e-30).project(x.float())
    torch.testing.assert_close(projected.double(), exact.project(x), rtol=1e-5, atol=1e-36)


@pytest.mark.parametrize("ball", [L2Ball, L1Ball])
def test_nan_stays_nan_and_lies_in_no_ball(ball):
    space = ball(torch.zeros(2, 3), 0.5)
    x = torch.tensor([[math.nan, 0.0, 9.0], [9.0, 0.0, 0.0]])
    assert space.contains(x).tolist() == [False, False]
    assert space.contains(space.project(x)).tolist() == [False, True]
