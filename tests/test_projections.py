"""The one-dimensional equations behind exact projections."""

import pytest
import torch

from facetwalk.projections import solve_rising, solve_shortening


@pytest.mark.parametrize("seed", range(5))
def test_solve_rising_meets_its_equation(seed):
    random = torch.Generator().manual_seed(seed)
    knots, slope = (torch.rand(6, 5, generator=random, dtype=torch.float64) for _ in range(2))
    full = (slope * knots).sum(1, keepdim=True)
    target = full * torch.linspace(0, 1.5, 6, dtype=torch.float64)[:, None]
    s = solve_rising(knots, slope, target)
    reached = (slope * torch.minimum(s, knots)).sum(1, keepdim=True)
    torch.testing.assert_close(reached, torch.minimum(target, full))
    assert s[-1] == knots[-1].max()


@pytest.mark.parametrize("seed", range(5))
def test_solve_shortening_meets_its_equation(seed):
    random = torch.Generator().manual_seed(seed)
    size, room = (torch.rand(6, 5, generator=random, dtype=torch.float64) for _ in range(2))
    full = torch.minimum(size, room).sum(1, keepdim=True)
    target = full * torch.linspace(0, 1.5, 6, dtype=torch.float64)[:, None]
    amount = solve_shortening(size, room, target)
    left = torch.minimum((size - amount).clamp_min(0), room).sum(1, keepdim=True)
    torch.testing.assert_close(left, torch.minimum(target, full))
    assert amount[-1] == 0
