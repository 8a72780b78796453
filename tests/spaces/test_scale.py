"""The scale of a set: the unit in which distances to hyperplanes are measured in it."""

import itertools

import pytest
import torch
from space_cases import DYKSTRA, EXACT, seeded_case
from torch import Tensor

import facetwalk as fw
from facetwalk.spaces import Box, L1Ball, L2Ball, LinfBall
from facetwalk.streams import Streams

CORNERS = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=4)))
BOXES = {
    "Box": (Box(torch.tensor([-1.0, 0.0, 2.0, 0.0]), torch.tensor([3.0, 0.5, 2.5, 9.0])), CORNERS),
    "Box of each": (Box(torch.tensor([[-1.0], [0.0]]), 2, shape=(4,)), CORNERS),
    "LinfBall": (LinfBall(torch.zeros(2, 4), torch.tensor([0.1, 3.0])), CORNERS),
}


@pytest.mark.parametrize(("space", "extreme"), BOXES.values(), ids=BOXES)
def test_scales_are_the_axes_of_an_ellipsoid_around_a_box(space, extreme):
    """Extreme points lie on it, all others inside."""
    center, rows = space.center, (space.count, *space.shape)

    def depth(x: Tensor) -> Tensor:
        return ((x - center) / space.scale).flatten(1).norm(dim=1)

    for direction in extreme:
        far = space.project(center + 20 * direction.reshape(space.shape).expand(rows))
        torch.testing.assert_close(depth(far), torch.ones(space.count), rtol=1e-4, atol=0)
    for number in range(50):
        streams = Streams(torch.arange(space.count)).fold(number)
        assert (depth(space.sample(streams)) <= 1 + 1e-5).all()


@pytest.mark.parametrize("kind", EXACT + DYKSTRA)
def test_scale_is_positive_and_follows_rows(kind):
    space = seeded_case(kind, seed=0).space
    everyone = space.scale.expand(space.count, *space.shape)
    assert (everyone > 0).all()
    rows = torch.tensor([2, 0])
    torch.testing.assert_close(space.select(rows).scale.expand(2, *space.shape), everyone[rows])


@pytest.mark.parametrize("ball", [L2Ball, L1Ball])
@pytest.mark.parametrize(("shape", "radii"), [((4,), 2.0), ((5, 5), 5.0), ((3, 32, 32), 10.0)])
def test_balls_that_share_their_room_have_the_scale_of_a_box_with_few_inputs(ball, shape, radii):
    space = ball(torch.zeros(2, *shape), torch.tensor([0.5, 3.0]))
    assert space.scale.flatten().tolist() == [0.5 * radii, 3.0 * radii]
    assert space.shares_room


def test_an_intersection_shares_its_room_where_a_member_does():
    box, ball = Box(-1, 1, shape=(4,)), L2Ball(torch.zeros(1, 4), 1.0)
    assert fw.Intersection(box, ball).shares_room
    assert not fw.Intersection(box, LinfBall(torch.zeros(1, 4), 0.5)).shares_room
