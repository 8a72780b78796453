"""Boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from facetwalk.spaces.base import Space
from facetwalk.spaces.bounds import as_bounds
from facetwalk.streams import Streams
from facetwalk.types import InputError


@dataclass(frozen=True, init=False, eq=False)
class Box(Space):
    """`low <= x <= high` in every coordinate.

    `low` and `high` are numbers, tensors of the input's shape, or, with `shape` given, tensors
    `(B, *shape)` with a box a problem.

    >>> Box(-1, 1, shape=(3,)).project(torch.tensor([[0.5, 2.0, -7.0]])).tolist()
    [[0.5, 1.0, -1.0]]
    """

    low: Tensor
    high: Tensor

    def __init__(
        self,
        low: float | Tensor,
        high: float | Tensor,
        shape: Sequence[int] | None = None,
    ) -> None:
        if shape is None:
            shapes = {bound.shape for bound in (low, high) if isinstance(bound, Tensor)}
            if len(shapes) != 1:
                raise InputError(
                    "a box needs a shape, as in Box(-1, 1, shape=(10,)), or tensors of one shape "
                    "for its bounds"
                )
            (shape,) = shapes
        if not shape:
            raise InputError("the points of a box need at least one dimension")
        lows, highs = as_bounds(low, high, shape, torch.float32)
        if not bool((torch.isfinite(lows) & torch.isfinite(highs)).all()):
            raise InputError("the bounds of a box must be finite numbers")
        if bool((lows > highs).any()):
            raise InputError("a box needs low <= high in every coordinate")
        object.__setattr__(self, "low", lows)
        object.__setattr__(self, "high", highs)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.low.shape[1:])

    @property
    def center(self) -> Tensor:
        return (self.low + self.high) / 2

    @property
    def radius(self) -> Tensor:
        return (self.high - self.low) / 2

    def project(self, x: Tensor) -> Tensor:
        return x.clamp(self.low, self.high)

    def sample(self, random: Streams) -> Tensor:
        uniform = random.uniform(self.shape, self.low.dtype)
        return self.project(self.low + (self.high - self.low) * uniform)
