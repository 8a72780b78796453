"""How far each coordinate goes from the centre where the way to a point is too long.

Everywhere `size` is how far the point is from the centre and `room` how far the bounds let it be,
both `(B, n)` and not negative; what the ways may measure together is `(B or 1, 1)`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from facetwalk.projections import solve_rising, solve_shortening

_PROPOSALS = 12
"""Of 5000 random rows one needed more of them to be exact to the last digit."""
_NEARLY = 64
"""Numbers are taken for equal that differ by so many units of the last place."""
_UNIT = 2.0**-26
"""Of squares, as a share of the largest size: those of sizes 1e26 times smaller do not vanish, and
nor do the inverses of the largest."""


def within_length(size: Tensor, room: Tensor, length: Tensor) -> Tensor:
    """The nearest ways whose Euclidean length is at most `length`, `(B, n)`.

    >>> within_length(torch.tensor([[3.0, 4.0]]), torch.tensor([[9.0, 9.0]]), torch.ones(1, 1))
    tensor([[0.6000, 0.8000]])
    """
    tiny = torch.finfo(size.dtype).tiny
    unit, far = length.clamp_min(tiny), (_UNIT * size.amax(1, keepdim=True)).clamp_min(tiny)
    share, direction = torch.minimum(room, length) / unit, size / far
    # The nearest ways are shrunk by a factor and clipped to the room; their squared length,
    # sum_i min(s * square_i, share_i^2), is piecewise linear in the factor's square s. Knots beyond
    # the factor 1 are all the same: equal numbers are sorted sooner.
    square = direction.square()
    knots = (share.square() / square.clamp_min(tiny)).clamp_max((far / unit).square())
    s = solve_rising(knots, square, torch.ones_like(far))
    short = torch.minimum(s.sqrt() * direction, share)
    short = short * (length / short.square().sum(1, keepdim=True).sqrt().clamp_min(1))
    within = torch.minimum(size, room)
    is_short = (within / unit).square().sum(1, keepdim=True) <= 1
    return torch.where(is_short, within, short)


def within_total(size: Tensor, room: Tensor, total: Tensor) -> Tensor:
    """The nearest ways that add up to `total` at most, `(B, n)`.

    >>> within_total(torch.tensor([[1.0, 0.5]]), torch.tensor([[9.0, 9.0]]), torch.ones(1, 1))
    tensor([[0.7500, 0.2500]])
    """
    reach = torch.minimum(room, total)
    return _shortened(size, room, total, solve_shortening(size, reach, total))


def _shortened(size: Tensor, room: Tensor, total: Tensor, amount: Tensor) -> Tensor:
    """All ways shortened by the same amount, nearly the right one, and clipped to the room."""
    reach, beyond = torch.minimum(room, total), size - amount
    short = torch.minimum(beyond.clamp_min(0), reach)
    # What rounding has left of the amount is that of a number as large as the sizes.
    free = ((beyond >= 0) & (beyond <= reach)).sum(1, keepdim=True).clamp_min(1)
    beyond = beyond - (short.sum(1, keepdim=True) - total) / free
    short = torch.minimum(beyond.clamp_min(0), reach)
    tiny = torch.finfo(size.dtype).tiny
    short = short * (total / short.sum(1, keepdim=True).clamp_min(tiny)).clamp_max(1)
    within = torch.minimum(size, room)
    return torch.where(within.sum(1, keepdim=True) <= total, within, short)


def within_both(size: Tensor, room: Tensor, length: Tensor, total: Tensor) -> Tensor:
    """The nearest ways of at most this Euclidean length and this sum, `(B, n)`.

    >>> size, room = torch.tensor([[3.0, 4.0]]), torch.tensor([[9.0, 9.0]])
    >>> within_both(size, room, torch.ones(1, 1), torch.full((1, 1), 1.2))
    tensor([[0.2258, 0.9742]])
    """
    most = solve_shortening(size, torch.minimum(room, total), total)
    by_length, by_total = within_length(size, room, length), _shortened(size, room, total, most)
    # Where both bind, ways are shortened by an amount and then shrunk to the length; the more they
    # are shortened, the less they add up to.
    low, high, amount = torch.zeros_like(most), most, most / 2
    for _ in range(_PROPOSALS):
        short = within_length((size - amount).clamp_min(0), room, length)
        over = short.sum(1, keepdim=True) > total
        low, high = torch.where(over, amount, low), torch.where(over, high, amount)
        proposed = _amount_of_both(size, short, room, length, total)
        settled = (proposed - amount).abs() <= _NEARLY * torch.finfo(size.dtype).eps * most
        between = (proposed > low) & (proposed < high)
        amount = torch.where(settled | between, proposed, low + (high - low) / 2)
    both = within_length((size - amount).clamp_min(0), room, length)
    both = both * (total / both.sum(1, keepdim=True).clamp_min(total))
    unit = length.clamp_min(torch.finfo(size.dtype).tiny)
    is_short = (by_total / unit).square().sum(1, keepdim=True) <= 1
    is_little = by_length.sum(1, keepdim=True) <= total
    return torch.where(is_little, by_length, torch.where(is_short, by_total, both))


def _amount_of_both(
    size: Tensor, short: Tensor, room: Tensor, length: Tensor, total: Tensor
) -> Tensor:
    """By how much ways are shortened, if those that end within the room do: `(B, 1)`.

    Length and sum are then two equations for the amount and the factor. NaN where none fits.
    """
    nearly = 1 - _NEARLY * torch.finfo(size.dtype).eps
    clipped = short >= nearly * torch.minimum(room, length)
    free = (short > 0) & ~clipped
    count = free.sum(1, keepdim=True)
    at_bounds = torch.where(clipped, short, 0.0)
    left = total - at_bounds.sum(1, keepdim=True)
    left_square = length.square() - at_bounds.square().sum(1, keepdim=True)
    mean = torch.where(free, size, 0.0).sum(1, keepdim=True) / count
    spread = torch.where(free, size - mean, 0.0).square().sum(1, keepdim=True)
    factor = ((left_square - left.square() / count) / spread).sqrt()
    return mean - left / (factor * count)
