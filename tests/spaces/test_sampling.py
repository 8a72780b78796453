"""Random points: inside the set, uniform, each from its own stream."""

import pytest
import torch
from scipy.stats import beta, kstest
from scipy.stats import uniform as uniform_law
from space_cases import DYKSTRA, EXACT, seeded_case

from facetwalk.spaces import Box, L1Ball, L2Ball, LinfBall
from facetwalk.streams import Streams


@pytest.mark.parametrize("kind", EXACT + DYKSTRA)
def test_samples_lie_inside_and_follow_their_streams(kind):
    case = seeded_case(kind, seed=1)
    streams = Streams.from_seeds(torch.arange(3), torch.zeros(3))
    points = case.space.sample(streams)
    assert points.shape == (3, 4)
    assert case.violation(points) <= 1e-6
    assert torch.equal(points, case.space.sample(streams))
    others = case.space.sample(streams.fold(1))
    assert (points != others).any(1).all()
    for i in range(3):
        alone = case.row(i).space.sample(Streams(streams.keys[i : i + 1]))
        torch.testing.assert_close(alone, points[i : i + 1], rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", EXACT + DYKSTRA)
def test_samples_of_one_set_differ_between_streams(kind):
    row = seeded_case(kind, seed=2).row(0)
    points = row.space.sample(Streams.from_seeds(torch.arange(50), torch.zeros(50)))
    assert len(points.unique(dim=0)) > 40
    assert (points.std(0) > 0.01).all()


@pytest.mark.parametrize("n", [2, 3, 10])
@pytest.mark.parametrize(("ball", "p"), [(L2Ball, 2), (L1Ball, 1)])
def test_ball_samples_follow_the_uniform_law(ball, p, n):
    center = torch.full((1, n), 3.0, dtype=torch.float64)
    streams = Streams.from_seeds(torch.arange(3000), torch.zeros(3000))
    offset = ball(center, 0.5).sample(streams) - center
    radius = torch.linalg.vector_norm(offset, p, dim=1) / 0.5
    assert kstest(radius.pow(n).numpy(), "uniform").pvalue > 1e-3
    share = (offset[:, 0] / (0.5 * radius)).abs()
    law = beta(0.5, (n - 1) / 2) if p == 2 else beta(1, n - 1)
    assert kstest(share.pow(p).numpy(), law.cdf).pvalue > 1e-3
    assert (offset > 0).double().mean(0).tolist() == pytest.approx([0.5] * n, abs=0.05)


@pytest.mark.parametrize(
    ("space", "low", "high"),
    [
        (Box(torch.tensor([-1.0, 2.0]), torch.tensor([1.0, 7.0])), [-1, 2], [1, 7]),
        (LinfBall(torch.tensor([[0.0, 5.0]]), 2.0), [-2, 3], [2, 7]),
        (LinfBall(torch.tensor([[0.0, 5.0]]), 2.0, bounds=(-1.0, 6.0)), [-1, 3], [2, 6]),
    ],
    ids=["Box", "LinfBall", "LinfBall in bounds"],
)
def test_box_samples_are_uniform_in_every_coordinate(space, low, high):
    points = space.sample(Streams.from_seeds(torch.arange(3000), torch.zeros(3000)))
    for column, a, b in zip(points.T, low, high, strict=True):
        assert kstest(column.numpy(), uniform_law(a, b - a).cdf).pvalue > 1e-3
