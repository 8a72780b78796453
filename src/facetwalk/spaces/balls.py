"""Balls in three norms, with bounds on every coordinate."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from facetwalk.batching import per_row, row_norm, unit_rows
from facetwalk.spaces.bounds import Bounds, as_bounds, as_pair, owned
from facetwalk.spaces.rounding import RoundingSpace, counting_type, rounded_within
from facetwalk.spaces.shortening import within_length, within_total
from facetwalk.streams import Streams
from facetwalk.types import InputError


@dataclass(frozen=True, init=False, eq=False)
class Ball(RoundingSpace):
    """What the balls share: centres, a radius each, and optional bounds on every coordinate."""

    centers: Tensor
    eps: Tensor
    """`(B, 1, ..., 1)`."""
    low: Tensor
    high: Tensor

    def __init__(self, centers: Tensor, eps: float | Tensor, bounds: Bounds | None = None) -> None:
        if not isinstance(centers, Tensor) or centers.ndim < 2 or not centers.numel():
            raise InputError(
                "a ball needs its centres as a tensor (B, *shape) with at least one problem; "
                "for one input pass x[None]"
            )
        if not centers.is_floating_point():
            raise InputError(
                f"the centres are {centers.dtype}: pass floats, for images usually x / 255"
            )
        if not bool(torch.isfinite(centers).all()):
            raise InputError("the centres of the balls hold NaN or infinite values")
        dtype = centers.dtype
        counted = counting_type(dtype)
        low, high = as_bounds(*as_pair(bounds), centers.shape[1:], counted)
        low, high = low.to(centers.device, counted), high.to(centers.device, counted)
        if len(low) not in (1, len(centers)):
            raise InputError(f"there are bounds for {len(low)} problems and {len(centers)} centres")
        outside = (centers < low.to(dtype)) | (centers > high.to(dtype))
        if bool(outside.any()):
            raise InputError(
                f"{int(outside.flatten(1).any(1).sum())} of {len(centers)} centres lie outside the "
                "bounds: scale the inputs, or give the bounds that they have"
            )
        self._set(
            dtype=dtype,
            centers=owned(centers, counted).clamp_(low, high),
            eps=per_row(as_sizes("eps", eps, len(centers), counted, centers.device), centers),
            low=low,
            high=high,
        )

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.centers.shape[1:])

    @property
    def center(self) -> Tensor:
        if not self.rounds:
            return self.centers
        return rounded_within(self.centers, self.low, self.high, self.dtype)

    @property
    def radius(self) -> Tensor:
        return self.eps.to(self.dtype)


def as_sizes(name: str, given: Any, count: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """A radius of each ball, `(B,)`."""
    try:
        sizes = torch.as_tensor(given, dtype=dtype, device=device).detach()
    except (TypeError, ValueError, RuntimeError):
        raise InputError(
            f"{name} must be a number or one for each of the {count} problems; it is {given!r}"
        ) from None
    if sizes.ndim > 1 or sizes.numel() not in (1, count):
        raise InputError(
            f"{name} must be a number or one for each of the {count} problems; "
            f"it has shape {tuple(sizes.shape)}"
        )
    if not bool((sizes >= 0).all()) or not bool(torch.isfinite(sizes).all()):
        raise InputError(f"{name} must be a finite number, not negative")
    return sizes.repeat(count // sizes.numel())


@dataclass(frozen=True, init=False, eq=False)
class LinfBall(Ball):
    """Every coordinate within `eps` of the centre, and within `bounds`.

    `centers` is `(B, *shape)`, one ball a problem; `eps` a number or `(B,)`.

    >>> images = torch.full((2, 1, 4, 4), 0.9)
    >>> ball = LinfBall(images, eps=0.2, bounds=(0, 1))
    >>> ball.project(images + 5).max().item()
    1.0
    """

    lowest: Tensor
    highest: Tensor
    """The corners of the box that the ball is within its bounds, `(B, *shape)`."""

    def __init__(self, centers: Tensor, eps: float | Tensor, bounds: Bounds | None = None) -> None:
        super().__init__(centers, eps, bounds)
        self._set_corners()

    def _set_corners(self) -> None:
        lowest = torch.maximum(self.centers - self.eps, self.low)
        highest = torch.minimum(self.centers + self.eps, self.high)
        self._set(lowest=lowest, highest=highest)

    def _nearest(self, x: Tensor) -> Tensor:
        return x.clamp(self.lowest, self.highest)

    def sample(self, random: Streams) -> Tensor:
        uniform = random.uniform(self.shape, self.lowest.dtype)
        return self.project(self.lowest + (self.highest - self.lowest) * uniform)

    def to(self, device: torch.device, dtype: torch.dtype) -> Self:
        moved = super().to(device, dtype)
        moved._set_corners()
        return moved


_INPUTS_OF_A_NEURON = 100
"""As many as a neuron has, roughly, where there are more."""


class SharingBall(Ball):
    """A ball whose coordinates share the room: a way that is too long is shortened as a whole.

    Infinite offsets from the centre count as the largest number there is, and all have a nearest
    point.
    """

    shares_room = True

    @property
    def scale(self) -> Tensor:
        return self.radius * math.sqrt(min(math.prod(self.shape), _INPUTS_OF_A_NEURON))

    @property
    @abstractmethod
    def limits(self) -> dict[int, Tensor]:
        """What the offset from the centre may measure, `(B, 1)`, by the order of the norm."""

    @abstractmethod
    def _shortened(self, size: Tensor, room: Tensor, limits: dict[int, Tensor]) -> Tensor:
        """How far each coordinate goes on the way to a point, where all is `(B, n)`."""

    def _nearest(self, x: Tensor) -> Tensor:
        offset = x - self.centers
        room = torch.where(offset > 0, self.high - self.centers, self.centers - self.low)
        size = offset.abs().clamp_max(torch.finfo(offset.dtype).max)
        limits = self._limits_in_16_bits(x) if self.rounds else self.limits
        short = self._shortened(size.flatten(1), room.flatten(1), limits).reshape(offset.shape)
        moved = torch.where(size <= short, x, self.centers + offset.sign() * short)
        return torch.minimum(torch.maximum(moved, self.low), self.high)

    def _limits_in_16_bits(self, x: Tensor) -> dict[int, Tensor]:
        """What is left of them once the centres are rounded, but for points that lie inside."""
        inside = ((x >= self.low) & (x <= self.high)).flatten(1).all(1, keepdim=True)
        for order, limit in self.limits.items():
            inside &= _length(x - self.centers, order) <= limit
        tiny = torch.finfo(x.dtype).tiny
        rounding, left = self.center - self.centers, {}
        for order, limit in self.limits.items():
            spent = (_length(rounding, order) / limit.clamp_min(tiny)).pow(order)
            rest = limit * (1 - spent).clamp_min(0).pow(1 / order)
            left[order] = torch.where(inside, limit, rest.to(x.dtype))
        return left

    def contains(self, x: Tensor) -> Tensor:
        rounding = torch.finfo(x.dtype).eps
        tolerance = 1e-5 * self.eps + rounding * self.centers.abs()
        inside = (x >= self.low - tolerance) & (x <= self.high + tolerance)
        inside = inside.flatten(1).all(1, keepdim=True)
        for order, limit in self.limits.items():
            slack = rounding * _length(self.centers, order)
            inside = inside & (
                _length(x - self.centers, order) <= (1 + 1e-5 + rounding) * limit + slack
            )
        return inside.squeeze(1)


def _length(x: Tensor, order: int) -> Tensor:
    """A norm of each row, `(B, 1)`, in double precision: no square of a float32 overflows there."""
    flat = x.flatten(1)
    return torch.linalg.vector_norm(flat, order, dim=1, keepdim=True, dtype=torch.float64)


class L2Ball(SharingBall):
    """Within Euclidean distance `eps` of the centre, and within `bounds`.

    >>> L2Ball(torch.zeros(1, 2), eps=1.0).project(torch.tensor([[3.0, 4.0]])).tolist()
    [[0.6000000238418579, 0.800000011920929]]
    """

    @property
    def limits(self) -> dict[int, Tensor]:
        return {2: self.eps.flatten(1)}

    def _shortened(self, size: Tensor, room: Tensor, limits: dict[int, Tensor]) -> Tensor:
        return within_length(size, room, limits[2])

    def sample(self, random: Streams) -> Tensor:
        direction = random.fold(0).normal(self.shape, self.centers.dtype)
        direction = direction / per_row(row_norm(direction), direction)
        return self.project(self.centers + self.eps * _depth(random, direction) * direction)

    def ascent(self, gradient: Tensor) -> Tensor:
        return self.radius * unit_rows(gradient)


class L1Ball(SharingBall):
    """Within `eps` of the centre in the sum of absolute differences, and within `bounds`.

    The steepest step moves the entry with the largest derivative alone, which is soon at a bound.
    So `ascent` moves all, in proportion to the cubes of their derivatives.

    >>> L1Ball(torch.zeros(1, 2), eps=1.0).project(torch.tensor([[1.0, 0.5]])).tolist()
    [[0.75, 0.25]]
    """

    @property
    def limits(self) -> dict[int, Tensor]:
        return {1: self.eps.flatten(1)}

    def _shortened(self, size: Tensor, room: Tensor, limits: dict[int, Tensor]) -> Tensor:
        return within_total(size, room, limits[1])

    def sample(self, random: Streams) -> Tensor:
        size = -random.fold(0).uniform(self.shape, self.centers.dtype).log()
        direction = random.fold(1).signs(self.shape, self.centers.dtype) * size
        direction = direction / per_row(size.flatten(1).sum(1), size)
        return self.project(self.centers + self.eps * _depth(random, direction) * direction)

    def ascent(self, gradient: Tensor) -> Tensor:
        size = gradient.abs().flatten(1)
        largest = size.amax(1, keepdim=True).clamp_min(torch.finfo(size.dtype).tiny)
        cube = (size / largest).pow(3)
        share = cube / cube.sum(1, keepdim=True).clamp_min(1)
        return self.radius * gradient.sign() * share.reshape(gradient.shape)


def _depth(random: Streams, direction: Tensor) -> Tensor:
    """Radius of a uniform point of the unit ball in as many dimensions as `direction` has."""
    n = math.prod(direction.shape[1:])
    return per_row(random.fold(2).uniform((1,), direction.dtype).pow(1 / n).flatten(), direction)


BALLS = {"inf": LinfBall, "2": L2Ball, "1": L1Ball}
"""The balls by the names of their norms."""
