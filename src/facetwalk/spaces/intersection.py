"""Intersections of spaces."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import reduce
from typing import Self

import torch
from torch import Tensor

from facetwalk.spaces.balls import L1Ball, L2Ball, LinfBall
from facetwalk.spaces.base import Space
from facetwalk.spaces.box import Box
from facetwalk.spaces.common_points import CommonPoints, in_all, smallest
from facetwalk.spaces.concentric import as_one_ball, by_centers, holds_centers
from facetwalk.spaces.rounding import counting_type
from facetwalk.types import InputError


@dataclass(frozen=True, init=False, eq=False)
class Intersection(Space):
    """Points that lie in every one of several spaces.

    Boxes and L-infinity balls, and L2 and L1 balls around one centre that these hold, are one set
    with an exact projection. Other spaces are projected onto in turns, which takes a hundred times
    as long and converges to the nearest common point.

    >>> both = Intersection(Box(0, 1, shape=(2,)), L2Ball(torch.zeros(1, 2), eps=1.0))
    >>> both.project(torch.tensor([[2.0, -1.0]])).tolist()
    [[1.0, 0.0]]
    """

    members: tuple[Space, ...]
    """The spaces, boxes merged into one."""
    whole: Space
    """The same set as one space."""

    def __init__(self, *members: Space) -> None:
        stranger = next((each for each in members if not isinstance(each, Space)), None)
        if stranger is not None:
            raise InputError(
                "an intersection takes spaces one by one, as in Intersection(box, ball); "
                f"one of what it got is a {type(stranger).__name__}"
            )
        if not members or len({member.shape for member in members}) > 1:
            raise InputError("an intersection needs one or more spaces of the same shape")
        counts = {member.count for member in members} - {1}
        if len(counts) > 1:
            raise InputError(
                "the spaces of an intersection describe different numbers of problems: "
                f"{sorted(counts)}"
            )
        members = tuple(part for member in members for part in _parts(member))
        device = members[0].center.device
        dtype = reduce(torch.promote_types, (member.center.dtype for member in members))
        exact = [member.to(device, counting_type(dtype)) for member in members]
        merged = _with_one_box(exact)
        whole = _as_one(merged)
        if not bool(in_all(merged, whole.center).all()):
            raise InputError("the spaces have no common point, or only touch")
        object.__setattr__(self, "members", tuple(each.to(device, dtype) for each in merged))
        object.__setattr__(self, "whole", whole.to(device, dtype))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.whole.shape

    @property
    def center(self) -> Tensor:
        return self.whole.center

    @property
    def radius(self) -> Tensor:
        return smallest(member.radius for member in self.members)

    @property
    def shares_room(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return any(member.shares_room for member in self.members)

    @property
    def scale(self) -> Tensor:
        return smallest(member.scale for member in self.members)

    def project(self, x: Tensor) -> Tensor:
        return self.whole.project(x)

    def contains(self, x: Tensor) -> Tensor:
        return in_all(self.members, x)

    def ascent(self, gradient: Tensor) -> Tensor:
        """The step of the member that is smallest, problem by problem."""
        rows = (len(gradient), *self.shape)
        sizes = torch.stack([m.radius.expand(rows).flatten(1).mean(1) for m in self.members])
        steps = torch.stack([member.ascent(gradient).expand(rows) for member in self.members])
        return steps[sizes.argmin(0), torch.arange(len(gradient), device=gradient.device)]

    def to(self, device: torch.device, dtype: torch.dtype) -> Self:
        moved = copy(self)
        members = tuple(member.to(device, dtype) for member in self.members)
        object.__setattr__(moved, "members", members)
        object.__setattr__(moved, "whole", self.whole.to(device, dtype))
        return moved


def _parts(space: Space) -> tuple[Space, ...]:
    return space.members if isinstance(space, Intersection) else (space,)


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


def _as_one(members: Sequence[Space]) -> Space:
    """The same intersection as one space: a box, a ball in bounds or, where it is neither, what
    the fewest spaces that make it up have in common."""
    balls = [member for member in members if isinstance(member, (L2Ball, L1Ball))]
    box = next((member for member in members if isinstance(member, Box)), None)
    parts = [member for member in members if not isinstance(member, (Box, L2Ball, L1Ball))]
    bounded: list[Space] = []
    for group in by_centers(balls):
        holds = box is not None and holds_centers(box, group[0])
        ball = as_one_ball(group, box if holds else None)
        (bounded if holds else parts).append(ball)
    if box is not None and not bounded:
        bounded.append(box)
    parts += bounded  # bounds last, so that they hold to the last digit
    return parts[0] if len(parts) == 1 else CommonPoints(parts)


def _as_box(space: Box | LinfBall) -> Box:
    if isinstance(space, Box):
        return space
    return Box(space.lowest, space.highest, shape=space.shape)
