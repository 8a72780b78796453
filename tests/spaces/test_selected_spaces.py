"""Spaces of chosen problems, and in another precision."""

import pytest
import torch
from space_cases import DYKSTRA, EXACT, seeded_case


def test_select_orders_and_repeats_problems():
    case = seeded_case("L2Ball & Box", seed=0)
    rows = torch.tensor([2, 0, 2])
    torch.testing.assert_close(case.space.select(rows).center, case.space.center[rows])


@pytest.mark.parametrize("kind", EXACT + DYKSTRA)
def test_to_changes_the_precision_of_everything(kind):
    case = seeded_case(kind, seed=0)
    single = case.space.to(torch.device("cpu"), torch.float32)
    projected = single.project(case.x.float())
    assert projected.dtype == single.center.dtype == single.radius.dtype == torch.float32
    torch.testing.assert_close(projected.double(), case.space.project(case.x), rtol=0, atol=1e-4)
    assert case.space.center.dtype == torch.float64
