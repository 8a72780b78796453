"""Balls: shared by all rows, of images, of no size, and their bounds."""

import pytest
import torch

from facetwalk.spaces import L1Ball, L2Ball, LinfBall
from facetwalk.streams import Streams


@pytest.mark.parametrize("ball", [LinfBall, L2Ball, L1Ball])
@pytest.mark.parametrize("bounds", [None, (-0.2, 0.3)])
def test_one_set_serves_every_row(ball, bounds):
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    shared, own = ball(torch.zeros(1, 4), 0.5, bounds), ball(torch.zeros(5, 4), 0.5, bounds)
    torch.testing.assert_close(shared.project(x), own.project(x))
    assert torch.equal(shared.contains(0.1 * x), own.contains(0.1 * x))
    streams = Streams(torch.arange(5))
    torch.testing.assert_close(shared.sample(streams), own.sample(streams))
    torch.testing.assert_close(shared.ascent(x), own.ascent(x))
    repeated = shared.select(torch.zeros(5, dtype=torch.int64))
    torch.testing.assert_close(repeated.project(x), own.project(x))


@pytest.mark.parametrize("ball", [LinfBall, L2Ball, L1Ball])
def test_image_shaped_points_project_as_flat_ones(ball):
    random = torch.Generator().manual_seed(0)
    centers, x = torch.rand(2, 3, 4, 2, generator=random), torch.randn(2, 3, 4, 2, generator=random)
    eps = torch.tensor([0.5, 2.0])
    image = ball(centers, eps, bounds=(0, 1))
    flat = ball(centers.flatten(1), eps, bounds=(0, 1))
    assert image.shape == (3, 4, 2)
    torch.testing.assert_close(image.project(x).flatten(1), flat.project(x.flatten(1)))
    torch.testing.assert_close(image.ascent(x).flatten(1), flat.ascent(x.flatten(1)))
    streams = Streams(torch.arange(2))
    torch.testing.assert_close(image.sample(streams).flatten(1), flat.sample(streams))


def test_a_cube_is_as_exact_as_its_precision():
    centers = torch.rand(3, 5, generator=torch.Generator().manual_seed(0))
    ball = LinfBall(centers, 0.1, bounds=(0, 1)).to(torch.device("cpu"), torch.float64)
    highest = (centers.double() + ball.eps).clamp_max(1)
    assert torch.equal(ball.project(torch.full((3, 5), torch.inf, dtype=torch.float64)), highest)
    inside = centers.double() + 0.3 * ball.eps
    inside = torch.where(inside > 1, centers.double(), inside)
    assert torch.equal(ball.project(inside), inside)


@pytest.mark.parametrize("ball", [LinfBall, L2Ball, L1Ball])
def test_a_ball_of_radius_zero_is_its_centre(ball):
    centers = torch.tensor([[0.3, -4.0], [1e4, 0.0]])
    space = ball(centers, 0.0)
    assert torch.equal(space.project(centers + 5), centers)
    assert torch.equal(space.sample(Streams(torch.arange(2))), centers)


def test_bounds_of_each_problem_and_coordinate():
    low = torch.tensor([[0.0, -1.0], [-2.0, -3.0]])
    ball = LinfBall(torch.zeros(2, 2), 10.0, bounds=(low, torch.tensor([1.0, 2.0])))
    assert torch.equal(ball.project(torch.full((2, 2), -50.0)), low)
    assert ball.project(torch.full((2, 2), 50.0)).tolist() == [[1.0, 2.0]] * 2


def test_number_bounds_keep_the_precision_of_the_centres():
    ball = LinfBall(torch.full((1, 2), 0.1, dtype=torch.float64), 5.0, bounds=(0.1, 0.7))
    projected = ball.project(torch.tensor([[-9.0, 9.0]], dtype=torch.float64))
    assert projected.tolist() == [[0.1, 0.7]]


def test_centres_are_detached_from_their_graph():
    centers = torch.zeros(1, 2, requires_grad=True)
    assert not L2Ball(centers, 1.0).center.requires_grad
