"""Points just inside and just outside, in few and in many dimensions."""

import pytest
import torch
from space_cases import BALLS

from facetwalk.spaces import Intersection, L1Ball, L2Ball

DIMENSIONS = [2, 3072, 150_528]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n", DIMENSIONS)
@pytest.mark.parametrize(("ball", "eps"), [(L2Ball, 0.5), (L1Ball, 12.0)])
def test_a_point_a_thousandth_too_far_lies_outside(ball, eps, n, dtype):
    random = torch.Generator().manual_seed(0)
    center = torch.rand(1, n, generator=random, dtype=dtype)
    space = ball(center, eps)
    for way in (torch.randn(1, n, generator=random), torch.ones(1, n), torch.eye(1, n)):
        way = way.to(dtype)
        edge = eps * way / torch.linalg.vector_norm(way, BALLS[ball.__name__][1])
        assert space.contains(center + 0.9999 * edge).all()
        assert space.contains(space.project(center + 1.5 * edge)).all()
        assert not space.contains(center + 1.001 * edge).any()


@pytest.mark.parametrize("ball", [L2Ball, L1Ball])
def test_a_point_beyond_the_bounds_lies_outside(ball):
    space = ball(torch.full((1, 1000), 0.9), 200.0, bounds=(0, 1))
    assert space.contains(torch.ones(1, 1000)).all()
    assert not space.contains(torch.ones(1, 1000).index_fill(1, torch.tensor([7]), 1.01)).any()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("ball", "eps"), [(L2Ball, 0.5), (L1Ball, 12.0)])
def test_a_point_of_16_bits_may_be_rounded(ball, eps, dtype):
    random = torch.Generator().manual_seed(0)
    center = torch.rand(1, 300, generator=random)
    way = torch.randn(1, 300, generator=random)
    edge = eps * way / torch.linalg.vector_norm(way, BALLS[ball.__name__][1])
    for space in (ball(center, eps), ball(center, eps).to(torch.device("cpu"), dtype)):
        assert space.contains((center + edge).to(dtype)).all()
        assert not space.contains((center + 1.5 * edge).to(dtype)).any()


def test_what_is_too_far_for_one_member_lies_outside_of_an_intersection():
    center = torch.rand(1, 3072, generator=torch.Generator().manual_seed(0))
    both = Intersection(L2Ball(center, 0.5), L1Ball(center, 12.0))
    spread = torch.ones(1, 3072)
    assert both.contains(center + 12 / 3072 * spread).all()
    assert not both.contains(center + 1.001 * 12 / 3072 * spread).any()
    assert not both.contains(center + 0.501 * torch.eye(1, 3072)).any()
