"""Boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from facetwalk.spaces.bounds import as_bounds, type_of
from facetwalk.spaces.rounding import RoundingSpace, rounded_within
from facetwalk.streams import Streams
from facetwalk.types import InputError, whole_number


@dataclass(frozen=True, init=False, eq=False)
class Box(RoundingSpace):
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
        lows, highs = as_bounds(low, high, _checked(shape), torch.float32)
        if not len(lows):
            raise InputError("a box needs bounds for at least one problem, and has them for none")
        if not bool((torch.isfinite(lows) & torch.isfinite(highs)).all()):
            raise InputError("the bounds of a box must be finite numbers")
        if bool((lows > highs).any()):
            raise InputError("a box needs low <= high in every coordinate")
        self._set(low=lows, high=highs, dtype=type_of(low, high, otherwise=torch.float32))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.low.shape[1:])

    @property
    def center(self) -> Tensor:
        center = (self.low + self.high) / 2
        return rounded_within(center, self.low, self.high, self.dtype) if self.rounds else center

    @property
    def radius(self) -> Tensor:
        return ((self.high - self.low) / 2).to(self.dtype)

    def _nearest(self, x: Tensor) -> Tensor:
        return x.clamp(self.low, self.high)

    def sample(self, random: Streams) -> Tensor:
        uniform = random.uniform(self.shape, self.low.dtype)
        return self.project(self.low + (self.high - self.low) * uniform)


def _checked(shape: Any) -> tuple[int, ...]:
    """The shape of a point, as a tuple."""
    try:
        return tuple(whole_number("a size", size, at_least=1) for size in shape) or _checked(None)
    except (TypeError, InputError):
        raise InputError(
            "the shape of a box must hold one or more positive whole numbers, as in "
            f"Box(-1, 1, shape=(10,)); it is {shape!r}"
        ) from None
