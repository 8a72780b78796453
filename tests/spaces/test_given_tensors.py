"""What a space keeps of the tensors that it is made from: their numbers, and no more."""

import pytest
import torch
from torch import nn

import facetwalk as fw
from facetwalk.spaces import Box, L1Ball, L2Ball, LinfBall, Space
from facetwalk.streams import Streams

BALLS = [LinfBall, L2Ball, L1Ball]


def boxes_and_balls(centers: torch.Tensor) -> list[Space]:
    balls = [ball(centers, 0.1, bounds=(centers - 1, centers + 1)) for ball in BALLS]
    return [*balls, Box(centers, centers + 1, shape=centers.shape[1:])]


def test_no_gradient_leads_to_them():
    given = torch.zeros(2, 3, requires_grad=True)
    eps = torch.ones(2, requires_grad=True)
    for space in (*boxes_and_balls(given), L2Ball(given, eps), Box(given[0], 1.0)):
        x = space.project(torch.ones(2, 3))
        assert not x.requires_grad
        assert not space.center.requires_grad
        assert not space.radius.requires_grad
    net = nn.Linear(3, 1).eval()
    result = fw.maximize(fw.Problem(net, fw.objectives.Output(0), Box(given[0], 1.0)))
    assert not result.x.requires_grad


def test_they_may_change_later():
    given, eps = torch.zeros(2, 3), torch.ones(2)
    spaces = [*boxes_and_balls(given), L2Ball(given, eps), Box(given[0], 1.0)]
    far = torch.full((2, 3), 7.0)
    before = [(space.project(far), space.center.clone(), space.radius.clone()) for space in spaces]
    given.fill_(0.5)
    eps.fill_(0.25)
    for space, (projected, center, radius) in zip(spaces, before, strict=True):
        assert torch.equal(space.project(far), projected)
        assert torch.equal(space.center, center)
        assert torch.equal(space.radius, radius)


LAID_OUT = {
    "transposed": torch.rand(2, 3, 5, 4).transpose(2, 3),
    "every other": torch.rand(2, 3, 4, 10)[..., ::2],
    "repeated": torch.rand(1, 3, 4, 5).expand(2, 3, 4, 5),
    "of volumes": torch.rand(2, 4, 5, 6, 3).permute(0, 4, 1, 2, 3),
    "of rows": torch.rand(6, 2).T,
}


@pytest.mark.parametrize("given", LAID_OUT.values(), ids=LAID_OUT)
def test_points_lie_in_order_whatever_lay_elsewhere(given):
    for space in boxes_and_balls(given):
        streams = Streams(torch.arange(len(given)))
        for x in (space.center, space.sample(streams), space.project(space.center + 1)):
            assert x.view(len(x), -1).shape == (len(given), given[0].numel())


class Viewing(nn.Module):
    def __init__(self, inputs: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(inputs, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, x):
        return self.net(x.view(len(x), -1))


@pytest.mark.parametrize("ball", BALLS)
@pytest.mark.parametrize("given", LAID_OUT.values(), ids=LAID_OUT)
def test_models_that_call_view_work_as_with_centres_in_order(given, ball):
    net = Viewing(given[0].numel()).eval()
    found = [
        fw.maximize(
            fw.Problem(net, fw.objectives.Output(0), ball(centers, 0.1)),
            solver=fw.solvers.Sign(steps=5),
        ).x
        for centers in (given, given.contiguous())
    ]
    assert torch.equal(*found)


def test_images_with_channels_last_stay_so():
    given = torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last)
    for space in boxes_and_balls(given):
        streams = Streams(torch.arange(2))
        for x in (space.center, space.sample(streams), space.project(given + 1)):
            assert x.is_contiguous(memory_format=torch.channels_last)
