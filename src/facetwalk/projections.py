"""The one-dimensional equations behind exact projections onto balls with bounds."""

from __future__ import annotations

import torch
from torch import Tensor


def solve_rising(knots: Tensor, slope: Tensor, target: Tensor) -> Tensor:
    """The s at which `sum_i slope_i * min(s, knot_i)` reaches `target`, or the largest knot.

    `knots` and `slope`, not negative, are `(B, n)`; `target` and the result are `(B, 1)`.
    """
    knots, order = knots.sort(dim=1)
    slope = slope.gather(1, order)
    reached_by = (slope * knots).cumsum(1)
    done = torch.cat([torch.zeros_like(reached_by[:, :1]), reached_by[:, :-1]], 1)  # before each
    rising = slope.flip(1).cumsum(1).flip(1)  # the slope between a knot and the one before it
    at_knot = done + rising * knots
    reached = at_knot >= target
    first = reached.to(torch.int64).argmax(1, keepdim=True)
    s = (target - done.gather(1, first)) / rising.gather(1, first).clamp_min(
        torch.finfo(knots.dtype).tiny
    )
    return torch.where(reached.any(1, keepdim=True), s.clamp_min(0), knots[:, -1:])


def solve_shortening(size: Tensor, room: Tensor, target: Tensor) -> Tensor:
    """The least amount a >= 0 for which `sum_i clip(size_i - a, 0, room_i) <= target`.

    `size` and `room` are `(B, n)`, `target` is `(B or 1, 1)`, the result `(B, 1)`.
    """
    target = target.expand(len(size), 1)
    starts = (size - room).clamp_min(0)  # below this amount a coordinate stays at its bound
    knots = torch.cat([torch.zeros_like(target), starts, size], dim=1)
    steps = torch.cat([torch.zeros_like(target), -torch.ones_like(size), torch.ones_like(size)], 1)
    knots, order = knots.sort(dim=1)
    slope = steps.gather(1, order).cumsum(1)  # after each knot
    drop = (slope[:, :-1] * knots.diff(dim=1)).cumsum(1)
    total = torch.minimum(size, room).sum(1, keepdim=True)
    value = torch.cat([total, total + drop], dim=1)
    above = value > target
    last = above.sum(1, keepdim=True) - 1
    at = last.clamp_min(0)
    amount = knots.gather(1, at) + (value.gather(1, at) - target) / (
        -slope.gather(1, at)
    ).clamp_min(1)
    return torch.where(last >= 0, amount, 0.0)
