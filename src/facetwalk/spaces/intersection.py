"""Intersections of spaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from facetwalk.spaces.balls import L1Ball, L2Ball, LinfBall
from facetwalk.spaces.base import Space
from facetwalk.spaces.box import Box
from facetwalk.types import InputError

_DYKSTRA_ROUNDS = 2000
_DYKSTRA_TOLERANCE = 1e-7


@dataclass(frozen=True, init=False, eq=False)
class Intersection(Space):
    """Points that lie in every one of several spaces.

    Boxes and L-infinity balls are merged, and become the bounds of an L2 or L1 ball whose centre
    they hold: such intersections project exactly. Others use Dykstra's algorithm, which converges
    to the nearest common point.

    >>> both = Intersection(Box(0, 1, shape=(2,)), L2Ball(torch.zeros(1, 2), eps=1.0))
    >>> both.project(torch.tensor([[2.0, -1.0]])).tolist()
    [[1.0, 0.0]]
    """

    members: tuple[Space, ...]
    """The spaces, boxes merged into one."""
    projected: tuple[Space, ...]
    """The same set in as few spaces as can be."""

    def __init__(self, *members: Space) -> None:
        if not members or len({member.shape for member in members}) > 1:
            raise InputError("an intersection needs one or more spaces of the same shape")
        counts = {member.count for member in members} - {1}
        if len(counts) > 1:
            raise InputError(
                "the spaces of an intersection describe different numbers of problems: "
                f"{sorted(counts)}"
            )
        object.__setattr__(self, "members", _with_one_box(members))
        object.__setattr__(self, "projected", _folded(self.members))
        if not bool(self.contains(self.center).all()):
            raise InputError("the spaces have no common point, or only touch")

    @property
    def shape(self) -> tuple[int, ...]:
        return self.members[0].shape

    @property
    def center(self) -> Tensor:
        first = max(self.members, key=lambda member: member.count)
        return self.project(first.center)

    @property
    def radius(self) -> Tensor:
        radius = self.members[0].radius
        for member in self.members[1:]:
            radius = torch.minimum(radius, member.radius)
        return radius

    @property
    def scale(self) -> Tensor:
        scale = self.members[0].scale
        for member in self.members[1:]:
            scale = torch.minimum(scale, member.scale)
        return scale

    def project(self, x: Tensor) -> Tensor:
        if len(self.projected) == 1:
            return self.projected[0].project(x)
        corrections = [torch.zeros_like(x) for _ in self.projected]
        tolerance = _DYKSTRA_TOLERANCE * self.radius
        for _ in range(_DYKSTRA_ROUNDS):
            changes = []
            for i, member in enumerate(self.projected):
                wished = x + corrections[i]
                x = member.project(wished)
                changes.append((wished - x - corrections[i]).abs())
                corrections[i] = wished - x
            if bool((torch.stack(changes) <= tolerance).all()):
                break
        return x

    def contains(self, x: Tensor) -> Tensor:
        inside = [member.contains(x) for member in self.members]
        return torch.stack(torch.broadcast_tensors(*inside)).all(0)

    def ascent(self, gradient: Tensor) -> Tensor:
        """The step of the member that is smallest, problem by problem."""
        rows = (len(gradient), *self.shape)
        sizes = torch.stack([m.radius.expand(rows).flatten(1).mean(1) for m in self.members])
        steps = torch.stack([member.ascent(gradient).expand(rows) for member in self.members])
        return steps[sizes.argmin(0), torch.arange(len(gradient), device=gradient.device)]


def _with_one_box(members: Sequence[Space]) -> tuple[Space, ...]:
    """The same intersection with all boxes and L-infinity balls merged into a last box."""
    boxes = [_as_box(member) for member in members if isinstance(member, (Box, LinfBall))]
    others = [member for member in members if not isinstance(member, (Box, LinfBall))]
    if not boxes:
        return tuple(others)
    low, high = boxes[0].low, boxes[0].high
    for box in boxes[1:]:
        low, high = torch.maximum(low, box.low), torch.minimum(high, box.high)
    if bool((low > high).any()):
        raise InputError("the boxes of the intersection have no common point")
    return (*others, Box(low, high, shape=members[0].shape))


def _folded(members: Sequence[Space]) -> tuple[Space, ...]:
    """The same intersection with a last box as the bounds of a ball whose centre it holds."""
    *others, box = members
    if not isinstance(box, Box):
        return tuple(members)
    for i, ball in enumerate(others):
        if isinstance(ball, (L2Ball, L1Ball)):
            low, high = torch.maximum(box.low, ball.low), torch.minimum(box.high, ball.high)
            if bool(((ball.centers >= low) & (ball.centers <= high)).all()):
                rows = max(len(ball.centers), len(low))
                centers = ball.centers.expand(rows, *ball.shape)
                bounded = type(ball)(centers, ball.eps.flatten().expand(rows), (low, high))
                return (*others[:i], bounded, *others[i + 1 :])
    return tuple(members)


def _as_box(space: Box | LinfBall) -> Box:
    if isinstance(space, Box):
        return space
    low = torch.maximum(space.centers - space.eps, space.low)
    high = torch.minimum(space.centers + space.eps, space.high)
    return Box(low, high, shape=space.shape)
