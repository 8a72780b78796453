"""The scale of a set: how far its farthest point is from the centre."""

import itertools

import pytest
import torch
from space_cases import DYKSTRA, EXACT, seeded_case
from torch import Tensor

from facetwalk.spaces import Box, L1Ball, L2Ball, LinfBall
from facetwalk.streams import Streams

CORNERS = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=4)))
TIPS = torch.cat([torch.eye(4), -torch.eye(4)])
ALL_AROUND = Streams(torch.arange(50)).normal((4,))
SCALED = {
    "Box": (Box(torch.tensor([-1.0, 0.0, 2.0, 0.0]), torch.tensor([3.0, 0.5, 2.5, 9.0])), CORNERS),
    "Box of each": (Box(torch.tensor([[-1.0], [0.0]]), 2, shape=(4,)), CORNERS),
    "LinfBall": (LinfBall(torch.zeros(2, 4), torch.tensor([0.1, 3.0])), CORNERS),
    "L2Ball": (L2Ball(torch.ones(2, 4), torch.tensor([0.1, 3.0])), ALL_AROUND),
    "L2Ball of images": (L2Ball(torch.ones(1, 2, 2), 3.0), ALL_AROUND),
    "L1Ball": (L1Ball(torch.ones(2, 4), torch.tensor([0.1, 3.0])), TIPS),
}


@pytest.mark.parametrize(("space", "extreme"), SCALED.values(), ids=SCALED)
def test_scales_are_the_axes_of_an_ellipsoid_around_the_set(space, extreme):
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
