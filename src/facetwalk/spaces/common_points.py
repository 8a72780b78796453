"""What spaces have in common, by projecting onto them in turns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Self

import torch
from torch import Tensor

from facetwalk.batching import per_row
from facetwalk.spaces.base import Space
from facetwalk.spaces.rounding import RoundingSpace, counting_type, rounded_towards

_ROUNDS = 300
_TOLERANCE = 1e-6
"""A round in which nothing moves by more, in radii, is the last one."""
_FARTHEST = 300
"""Points farther away, in radii, are taken for nearer ones in the same direction."""
_HALVINGS = 20


@dataclass(frozen=True, init=False, eq=False)
class CommonPoints(RoundingSpace):
    """The points that lie in every one of several spaces.

    Dykstra's algorithm converges to the nearest one. Where it does not get there in time, the
    projection is the last common point on the straight way to where it is.
    """

    members: tuple[Space, ...]
    inside: Tensor
    """A common point, `(B, *shape)`."""

    def __init__(self, members: Sequence[Space]) -> None:
        rows = max(member.count for member in members)
        starts = [member.center.expand(rows, *member.shape) for member in members]
        self._set(members=tuple(members), inside=starts[0], dtype=starts[0].dtype)
        found = [self._nearest(start) for start in starts]  # on several sides of the set
        self._set(inside=(reduce(torch.add, found) / len(found)).to(self.dtype))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.members[0].shape

    @property
    def center(self) -> Tensor:
        center = self.inside
        if self.rounds:
            for member in self.members:
                center = member.to(center.device, self.dtype).project(center)
        return center

    @property
    def radius(self) -> Tensor:
        return smallest(member.radius for member in self.members).to(self.dtype)

    def contains(self, x: Tensor) -> Tensor:
        return in_all(self.members, x)

    def to(self, device: torch.device, dtype: torch.dtype) -> Self:
        moved = super().to(device, dtype)
        counted = counting_type(dtype)
        moved._set(members=tuple(member.to(device, counted) for member in self.members))
        return moved

    def project(self, x: Tensor) -> Tensor:
        x = x.to(self.dtype) if self.rounds else x
        dtype = torch.promote_types(x.dtype, self.inside.dtype)
        nearest, center = self._nearest(x), self.center

        def on_the_way(share: Tensor) -> Tensor:
            part = torch.lerp(self.inside.double(), nearest, per_row(share, nearest)).to(dtype)
            return rounded_towards(part, center) if self.rounds else part

        far = nearest.new_ones(len(nearest))
        inside = self.contains(on_the_way(far).to(dtype))
        share = inside.to(far.dtype)
        if not bool(inside.all()):
            for _ in range(_HALVINGS):
                middle = (share + far) / 2
                inside = self.contains(on_the_way(middle).to(dtype))
                share, far = torch.where(inside, middle, share), torch.where(inside, far, middle)
        return on_the_way(share)

    def _nearest(self, x: Tensor) -> Tensor:
        """In double precision; rows that have come to rest stay.

        Corrections go ahead in the direction of their last step, and from rest again where that
        leads back (O'Donoghue and Candès, 2015): ten times fewer rounds.
        """
        x = given = self._not_too_far(x.double())
        tolerance = _TOLERANCE * smallest(member.radius for member in self.members)
        known = ahead = torch.stack([torch.zeros_like(x) for _ in self.members])
        speed = torch.ones_like(x.flatten(1)[:, 0])
        at_rest = torch.zeros_like(speed, dtype=torch.bool)
        for _ in range(_ROUNDS):
            point, corrections = given - ahead.sum(0), []
            for member, correction in zip(self.members, ahead, strict=True):
                wished = point + correction
                point = member.project(wished)
                corrections.append(wished - point)
            found = torch.stack(corrections)
            step = found - known
            still = (step.abs().amax(0) <= tolerance).flatten(1).all(1)
            x = torch.where(per_row(at_rest, x), x, point)
            at_rest = at_rest | (still & self.contains(x))
            if bool(at_rest.all()):
                break
            back = ((ahead - found) * step).sum(0).flatten(1).sum(1) > 0
            speed = torch.where(back, 1.0, speed)
            faster = (1 + (1 + 4 * speed.square()).sqrt()) / 2
            ahead = found + per_row((speed - 1) / faster, x) * step
            known, speed = found, faster
        return x

    def _not_too_far(self, x: Tensor) -> Tensor:
        largest = torch.finfo(torch.float32).max
        offset = (x - self.inside).clamp(-largest, largest)
        radius = smallest(member.radius for member in self.members).flatten(1).amax(1)
        length = offset.abs().flatten(1).amax(1)
        shrink = (_FARTHEST * radius / length.clamp_min(1 / largest)).clamp_max(1)
        return torch.where(per_row(shrink < 1, x), self.inside + offset * per_row(shrink, x), x)


def smallest(sizes: Iterable[Tensor]) -> Tensor:
    return reduce(torch.minimum, sizes)


def in_all(spaces: Iterable[Space], x: Tensor) -> Tensor:
    """Whether each row lies in every space: bool, `(B,)`."""
    return reduce(torch.logical_and, (space.contains(x) for space in spaces))
