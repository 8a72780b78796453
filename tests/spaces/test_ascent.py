"""The steepest step in the geometry of each set."""

import pytest
import torch
from space_cases import DYKSTRA, EPS, EXACT, seeded_case

from facetwalk.spaces import Box, L1Ball, L2Ball, LinfBall


@pytest.mark.parametrize("scale", [1.0, 1e-25, 1e15])
@pytest.mark.parametrize(
    ("space", "dual_norm"),
    [
        (LinfBall(torch.zeros(2, 6), EPS), lambda g: EPS.double() * g.abs().sum(1)),
        (L2Ball(torch.zeros(2, 6), EPS), lambda g: EPS.double() * g.square().sum(1).sqrt()),
        (
            Box(torch.full((6,), -1.0), torch.arange(6.0)),
            lambda g: (g.abs() * (torch.arange(6.0) + 1) / 2).sum(1),
        ),
    ],
    ids=["LinfBall", "L2Ball", "Box"],
)
def test_ascent_attains_the_maximum_of_a_linear_function(space, dual_norm, scale):
    gradient = scale * torch.randn(2, 6, generator=torch.Generator().manual_seed(3))
    gain = (gradient.double() * space.ascent(gradient).double()).sum(1)
    torch.testing.assert_close(gain, dual_norm(gradient.double()), rtol=1e-5, atol=0)


@pytest.mark.parametrize(
    "gradient",
    [
        torch.randn(2, 50, generator=torch.Generator().manual_seed(4)),
        1e-30 * torch.randn(2, 3, generator=torch.Generator().manual_seed(4)),
        torch.tensor([[1.0, -1.0, 1.0, 0.5], [0.0, 0.0, -3.0, 0.0]]),
        torch.zeros(2, 60).index_fill(1, torch.tensor([7]), -1.0),
    ],
    ids=["many entries", "tiny", "ties", "fewer entries than the share"],
)
def test_l1_ascent_goes_up_and_has_length_eps(gradient):
    step = L1Ball(torch.zeros_like(gradient), EPS).ascent(gradient)
    torch.testing.assert_close(step.abs().sum(1), EPS)
    assert ((step.double() * gradient.double()).sum(1) > 0).all()


def test_l1_ascent_prefers_large_entries_and_moves_all():
    step = L1Ball(torch.zeros(1, 4), 3.6).ascent(torch.tensor([[1.0, -2.0, 3.0, 0.0]]))
    torch.testing.assert_close(step, torch.tensor([[0.1, -0.8, 2.7, 0.0]]))


@pytest.mark.parametrize("kind", EXACT + DYKSTRA)
def test_ascent_of_a_zero_gradient_is_zero(kind):
    assert not seeded_case(kind, seed=0).space.ascent(torch.zeros(3, 4)).any()


@pytest.mark.parametrize("kind", EXACT + DYKSTRA)
def test_ascent_of_a_batch_is_the_ascent_of_its_rows(kind):
    case = seeded_case(kind, seed=6, problems=8)
    together = case.space.ascent(case.x)
    assert ((together * case.x).sum(1) > 0).all()
    for i in range(8):
        torch.testing.assert_close(case.row(i).space.ascent(case.x[i : i + 1])[0], together[i])
