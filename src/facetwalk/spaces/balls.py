"""Balls in three norms, with bounds on every coordinate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from facetwalk.batching import per_row, row_norm, unit_rows
from facetwalk.projections import solve_rising, solve_shortening
from facetwalk.spaces.base import Space
from facetwalk.spaces.bounds import Bounds, as_bounds
from facetwalk.streams import Streams
from facetwalk.types import InputError


@dataclass(frozen=True, init=False, eq=False)
class _Ball(Space):
    """What the balls share: centres, a radius each, and optional bounds on every coordinate."""

    centers: Tensor
    eps: Tensor
    """`(B, 1, ..., 1)`."""
    low: Tensor
    high: Tensor

    def __init__(self, centers: Tensor, eps: float | Tensor, bounds: Bounds | None = None) -> None:
        if not isinstance(centers, Tensor) or centers.ndim < 2 or not len(centers):
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
        radii = torch.as_tensor(eps, dtype=centers.dtype, device=centers.device)
        if radii.ndim > 1 or radii.numel() not in (1, len(centers)):
            raise InputError(
                f"eps must be a number or one for each of the {len(centers)} problems; "
                f"it has shape {tuple(radii.shape)}"
            )
        if not bool((radii >= 0).all()) or not bool(torch.isfinite(radii).all()):
            raise InputError("eps must be a finite number, not negative")
        low, high = bounds if bounds is not None else (-torch.inf, torch.inf)
        lows, highs = as_bounds(low, high, centers.shape[1:], centers.dtype)
        lows, highs = lows.to(centers.device), highs.to(centers.device)
        if len(lows) not in (1, len(centers)):
            raise InputError(
                f"there are bounds for {len(lows)} problems and {len(centers)} centres"
            )
        outside = (((centers < lows) | (centers > highs)).flatten(1).any(1)).sum().item()
        if outside:
            raise InputError(
                f"{outside} of {len(centers)} centres lie outside the bounds: "
                "scale the inputs, or give the bounds that they have"
            )
        object.__setattr__(self, "centers", centers.detach())
        object.__setattr__(self, "eps", per_row(radii.expand(len(centers)), centers))
        object.__setattr__(self, "low", lows)
        object.__setattr__(self, "high", highs)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.centers.shape[1:])

    @property
    def center(self) -> Tensor:
        return self.centers

    @property
    def radius(self) -> Tensor:
        return self.eps

    def _room(self, offset: Tensor) -> Tensor:
        """How far each coordinate may move from the centre on the side of `offset`."""
        return torch.where(offset > 0, self.high - self.centers, self.centers - self.low)

    def _at(self, offset: Tensor) -> Tensor:
        x = self.centers + offset
        return torch.minimum(torch.maximum(x, self.low), self.high)


@dataclass(frozen=True, init=False, eq=False)
class LinfBall(_Ball):
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
        object.__setattr__(self, "lowest", lowest)
        object.__setattr__(self, "highest", highest)

    def project(self, x: Tensor) -> Tensor:
        return x.clamp(self.lowest, self.highest)

    def sample(self, random: Streams) -> Tensor:
        uniform = random.uniform(self.shape, self.lowest.dtype)
        return self.project(self.lowest + (self.highest - self.lowest) * uniform)

    def to(self, device: torch.device, dtype: torch.dtype) -> Self:
        moved = super().to(device, dtype)
        moved._set_corners()
        return moved


class L2Ball(_Ball):
    """Within Euclidean distance `eps` of the centre, and within `bounds`.

    >>> L2Ball(torch.zeros(1, 2), eps=1.0).project(torch.tensor([[3.0, 4.0]])).tolist()
    [[0.6000000238418579, 0.800000011920929]]
    """

    @property
    def scale(self) -> Tensor:
        return self.eps

    def project(self, x: Tensor) -> Tensor:
        offset = x - self.centers
        square, room = offset.square().flatten(1), self._room(offset).square().flatten(1)
        target = self.eps.square().flatten(1)
        # The nearest point shrinks the offset by a factor and clips it to the bounds; its squared
        # length, sum_i min(s * square_i, room_i), is piecewise linear in the factor's square s.
        knots = (room / square.clamp_min(torch.finfo(x.dtype).tiny)).clamp_max(1.0)
        s = solve_rising(knots, square, target)
        return self._at(offset * per_row(s.sqrt(), offset))

    def sample(self, random: Streams) -> Tensor:
        direction = random.fold(0).normal(self.shape, self.centers.dtype)
        direction = direction / per_row(row_norm(direction), direction)
        return self.project(self.centers + self.eps * _depth(random, direction) * direction)

    def ascent(self, gradient: Tensor) -> Tensor:
        return self.eps * unit_rows(gradient)


class L1Ball(_Ball):
    """Within `eps` of the centre in the sum of absolute differences, and within `bounds`.

    >>> L1Ball(torch.zeros(1, 2), eps=1.0).project(torch.tensor([[1.0, 0.5]])).tolist()
    [[0.75, 0.25]]
    """

    @property
    def scale(self) -> Tensor:
        return self.eps

    def project(self, x: Tensor) -> Tensor:
        offset = x - self.centers
        size, room = offset.abs().flatten(1), self._room(offset).flatten(1)
        target = self.eps.flatten(1)
        # The nearest point shortens every offset by the same amount and clips it to [0, room].
        amount = solve_shortening(size, room, target)
        short = torch.minimum(
            (offset.abs() - per_row(amount, offset)).clamp_min(0), room.view_as(x)
        )
        length = per_row(short.flatten(1).sum(1), x).clamp_min(torch.finfo(x.dtype).tiny)
        return self._at(offset.sign() * short * (self.eps / length).clamp_max(1))

    def sample(self, random: Streams) -> Tensor:
        size = -random.fold(0).uniform(self.shape, self.centers.dtype).log()
        direction = random.fold(1).signs(self.shape, self.centers.dtype) * size
        direction = direction / per_row(size.flatten(1).sum(1), size)
        return self.project(self.centers + self.eps * _depth(random, direction) * direction)

    def ascent(self, gradient: Tensor) -> Tensor:
        size = gradient.abs().flatten(1)
        largest = max(1, size.shape[1] // 20)
        threshold = size.topk(largest, dim=1).values[:, -1]
        signs = gradient.sign() * (gradient.abs() >= per_row(threshold, gradient))
        entries = signs.abs().flatten(1).sum(1).clamp_min(1)
        return self.eps * signs / per_row(entries, gradient)


def _depth(random: Streams, direction: Tensor) -> Tensor:
    """Radius of a uniform point of the unit ball in as many dimensions as `direction` has."""
    n = math.prod(direction.shape[1:])
    return per_row(random.fold(2).uniform((1,), direction.dtype).pow(1 / n).flatten(), direction)


BALLS = {"inf": LinfBall, "2": L2Ball, "1": L1Ball}
"""The balls by the names of their norms."""
