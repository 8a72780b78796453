"""Points of 16 bits: what they are is counted in 32, and they are rounded into their set."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from facetwalk.batching import move
from facetwalk.spaces.base import Space


@dataclass(frozen=True, init=False, eq=False)
class RoundingSpace(Space):
    """A space that keeps its numbers in 32 bits or more, also where its points have 16."""

    dtype: torch.dtype
    """Of points."""

    def _set(self, **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def rounds(self) -> bool:
        """Whether points have fewer bits than the space's numbers."""
        return counting_type(self.dtype) != self.dtype

    @abstractmethod
    def _nearest(self, x: Tensor) -> Tensor:
        """The nearest point, in the precision of the space's numbers."""

    def project(self, x: Tensor) -> Tensor:
        if not self.rounds:
            return self._nearest(x)
        nearest = self._nearest(x.to(self.dtype).to(counting_type(self.dtype)))
        return rounded_towards(nearest, self.center)

    def contains(self, x: Tensor) -> Tensor:
        if not self.rounds:
            return super().contains(x)
        return self.to(x.device, counting_type(self.dtype)).contains(x)

    def to(self, device: torch.device, dtype: torch.dtype) -> Self:
        moved = move(self, device, counting_type(dtype))
        moved._set(dtype=dtype)
        return moved


def counting_type(dtype: torch.dtype) -> torch.dtype:
    """The type in which points of type `dtype` are counted.

    >>> counting_type(torch.bfloat16), counting_type(torch.float64)
    (torch.float32, torch.float64)
    """
    return torch.promote_types(dtype, torch.float32)


def rounded_towards(x: Tensor, center: Tensor) -> Tensor:
    """`x` rounded to the 16 bits of `center`, and never away from it.

    >>> rounded_towards(torch.tensor([0.3, -0.3]), torch.zeros(2, dtype=torch.bfloat16)).tolist()
    [0.298828125, -0.298828125]
    """
    near, middle = x.to(center.dtype), center.to(x.dtype)
    wide = near.to(x.dtype)
    return _stepped(near, up=(wide < x) & (x < middle), down=(wide > x) & (x > middle))


def rounded_within(x: Tensor, low: Tensor, high: Tensor, dtype: torch.dtype) -> Tensor:
    """`x` in the 16 bits of `dtype`, and not rounded out of its bounds."""
    near = x.to(dtype)
    wide = near.to(x.dtype)
    return _stepped(near, up=wide < low, down=wide > high)


def _stepped(x: Tensor, up: Tensor, down: Tensor) -> Tensor:
    """The next larger or smaller number of a type of 16 bits, or `x` itself."""
    order = _order(x.view(torch.int16))
    return _order(order + up.to(torch.int16) - down.to(torch.int16)).view(x.dtype)


def _order(bits: Tensor) -> Tensor:
    """Integers in the order of the numbers with these bits, a sign and a magnitude; and back."""
    return torch.where(bits < 0, -(2**15) - bits, bits)
