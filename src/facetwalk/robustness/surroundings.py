"""Where an attack may look: within a distance of each image, and within bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from textwrap import shorten

import torch
from torch import Tensor

from facetwalk.spaces import BALLS, Bounds, Space
from facetwalk.spaces.bounds import as_bounds
from facetwalk.types import InputError

_NUMBERS = {math.inf: "inf", 2: "2", 1: "1"}
_SHORT = 60
"""Letters of a value in a message."""


@dataclass(frozen=True)
class Surroundings:
    """Where an attack may look: within `eps` of an image in a norm, and within bounds."""

    eps: float
    norm: str
    bounds: Bounds | None

    @classmethod
    def of(cls, eps: float, norm: str | float, bounds: Bounds | None) -> Surroundings:
        """Raises `InputError` for a norm that there is no ball of, no distance and no bounds.

        >>> [Surroundings.of(0.1, norm, None).norm for norm in ("Linf", "l2", 1, float("inf"))]
        ['inf', '2', '1', 'inf']
        """
        name = _name_of(norm)
        if name not in BALLS:
            raise InputError(f"norm must be one of {', '.join(BALLS)}; it is {_short(norm)}")
        try:
            radius = float(eps)
        except (TypeError, ValueError, RuntimeError):
            radius = math.nan
        if not 0 <= radius < math.inf:
            raise InputError(f"eps must be a finite number, not negative; it is {_short(eps)}")
        return cls(radius, name, bounds if bounds is None else _as_pair(bounds))

    def around(self, images: Tensor) -> Space:
        """A ball for each image."""
        bounds = None if self.bounds is None else bounds_of(self.bounds, images)
        return BALLS[self.norm](images, self.eps, bounds=bounds)


def _name_of(norm: object) -> str | None:
    """A norm as `BALLS` calls it, if it may be one."""
    if isinstance(norm, Real):
        return _NUMBERS.get(norm)  # pyright: ignore[reportArgumentType]
    return norm.lower().removeprefix("l") if isinstance(norm, str) else None


def bounds_of(bounds: Bounds, images: Tensor) -> tuple[Tensor, Tensor]:
    """A lowest and a highest value of every pixel, `(1, *shape)` each, on the images' device and
    in their precision.

    >>> low, high = bounds_of((0, torch.tensor([[1.0], [2.0]])), torch.rand(3, 2, 2))
    >>> high.tolist()
    [[[1.0, 1.0], [2.0, 2.0]]]
    """
    low, high = (
        torch.as_tensor(bound, dtype=images.dtype, device=images.device)
        for bound in _as_pair(bounds)
    )
    lows, highs = as_bounds(low, high, images.shape[1:], images.dtype)
    if len(lows) > 1:
        raise InputError(
            f"bounds must be the same for all images; these are for {len(lows)}: attack images "
            "that have other bounds in calls of their own"
        )
    return lows, highs


def _as_pair(bounds: object) -> Bounds:
    """Bounds that are two numbers or tensors; `InputError` for others."""
    if isinstance(bounds, (tuple, list)) and len(bounds) == 2 and all(map(_is_number, bounds)):
        return bounds[0], bounds[1]
    raise InputError(
        "bounds must be two numbers or tensors, a lowest and a highest, or None for no bounds; "
        f"they are {_short(bounds)}"
    )


def _is_number(bound: object) -> bool:
    try:
        return not torch.as_tensor(bound).is_complex()
    except (TypeError, ValueError, RuntimeError):
        return False


def _short(value: object) -> str:
    """What `value` is, in one line."""
    return shorten(repr(value), _SHORT, placeholder=" ...")
