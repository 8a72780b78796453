"""Straight lines around `max(z, 0)` where `z` is between bounds."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Relaxation(NamedTuple):
    """`lower * z <= max(z, 0) <= upper * z + offset` for every z between the bounds."""

    upper: Tensor
    offset: Tensor
    lower: Tensor


def relax(low: Tensor, high: Tensor) -> Relaxation:
    """The chord above, and below whichever of `0` and `z` cuts off the smaller triangle.

    >>> [line.item() for line in relax(torch.tensor(-1.0), torch.tensor(3.0))]
    [0.75, 0.75, 1.0]
    """
    negative, positive = low.clamp(max=0), high.clamp(min=0)
    upper = positive / (positive - negative).clamp(min=torch.finfo(low.dtype).tiny)
    upper = torch.where(low >= 0, 1.0, upper)
    lower = ((high > -low) | (low >= 0)).to(low.dtype)
    return Relaxation(upper, -upper * negative, lower)
