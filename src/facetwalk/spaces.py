"""Feasible sets: boxes, balls with bounds, and intersections, one for each problem of a batch.

To write a space of your own, derive a frozen dataclass from `Space`. Its tensor fields have
one row a problem (or one row for all), and it defines `shape`, `center`, `radius` and
`project`; the rest has defaults.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from facetwalk.batching import move, per_row, row_norm, take_rows, unit_rows
from facetwalk.projections import solve_rising, solve_shortening
from facetwalk.streams import Streams
from facetwalk.types import InputError

Bounds = tuple[float | Tensor, float | Tensor]


class Space(ABC):
    """A convex feasible set for each problem of a batch.

    Tensors that hold a set's data have shape `(B, ...)`, or `(1, ...)` where all problems
    share it. Every `x` below is `(B, *shape)`.
    """

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of one point."""

    @property
    @abstractmethod
    def center(self) -> Tensor:
        """A point of the set to start from, `(B or 1, *shape)`."""

    @property
    @abstractmethod
    def radius(self) -> Tensor:
        """How far the set reaches in each coordinate, broadcastable to `(B, *shape)`.

        Step sizes are given in this unit.
        """

    @property
    def scale(self) -> Tensor:
        """The unit in which distances to hyperplanes are measured, broadcastable to `(B, *shape)`.

        How far the farthest point is from the centre: the radius of an L2 or L1 ball, and half the
        diagonal, `radius * sqrt(n)`, of a box or an L-infinity ball (in each coordinate, where the
        sides differ).
        """
        return self.radius * math.sqrt(math.prod(self.shape))

    @abstractmethod
    def project(self, x: Tensor) -> Tensor:
        """The nearest point of the set."""

    @property
    def count(self) -> int:
        """The number of problems that the set's own data describe."""
        return len(self.center)

    def sample(self, random: Streams) -> Tensor:
        """A random point for each stream."""
        noise = 2 * random.uniform(self.shape, self.center.dtype) - 1
        return self.project(self.center + self.radius * noise)

    def contains(self, x: Tensor) -> Tensor:
        """Whether each row lies in the set, up to rounding: bool, `(B,)`."""
        tolerance = 1e-5 * self.radius + 4 * torch.finfo(x.dtype).eps * self.center.abs()
        return ((self.project(x) - x).abs() <= tolerance).flatten(1).all(1)

    def ascent(self, gradient: Tensor) -> Tensor:
        """The step that increases a linear function the most, one radius long.

        In the set's own geometry: the gradient's signs for boxes and L-infinity balls, its
        direction for L2 balls, its largest entries for L1 balls.
        """
        return self.radius * gradient.sign()

    def select(self, rows: Tensor) -> Self:
        """The sets of some problems, in the order of `rows` (int64)."""
        return take_rows(self, rows)

    def to(self, device: torch.device, dtype: torch.dtype) -> Self:
        """The same sets on another device, in another precision."""
        return move(self, device, dtype)


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
        lows, highs = _bounds(low, high, shape, torch.float32)
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
        return torch.minimum(torch.maximum(x, self.low), self.high)

    def sample(self, random: Streams) -> Tensor:
        uniform = random.uniform(self.shape, self.low.dtype)
        return self.project(self.low + (self.high - self.low) * uniform)


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
        lows, highs = _bounds(low, high, centers.shape[1:], centers.dtype)
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


class LinfBall(_Ball):
    """Every coordinate within `eps` of the centre, and within `bounds`.

    `centers` is `(B, *shape)`, one ball a problem; `eps` a number or `(B,)`.

    >>> images = torch.full((2, 1, 4, 4), 0.9)
    >>> ball = LinfBall(images, eps=0.2, bounds=(0, 1))
    >>> ball.project(images + 5).max().item()
    1.0
    """

    def project(self, x: Tensor) -> Tensor:
        return self._at(torch.minimum(torch.maximum(x - self.centers, -self.eps), self.eps))

    def sample(self, random: Streams) -> Tensor:
        low = torch.maximum(self.centers - self.eps, self.low)
        high = torch.minimum(self.centers + self.eps, self.high)
        return self.project(low + (high - low) * random.uniform(self.shape, low.dtype))


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


_DYKSTRA_ROUNDS = 2000
_DYKSTRA_TOLERANCE = 1e-7


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


def _bounds(
    low: float | Tensor, high: float | Tensor, shape: Sequence[int], dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Bounds as `(B or 1, *shape)` each; `dtype` is that of bounds given as numbers."""
    given = next((b.dtype for b in (low, high) if isinstance(b, Tensor)), dtype)
    dtype = given if given.is_floating_point else dtype
    rows = []
    for bound in (torch.as_tensor(low, dtype=dtype), torch.as_tensor(high, dtype=dtype)):
        wide = bound if bound.ndim > len(shape) else bound[None]
        try:
            rows.append(wide.expand(len(wide), *shape))
        except RuntimeError as error:
            raise InputError(
                f"bounds of shape {tuple(bound.shape)} do not fit inputs of shape {tuple(shape)}"
            ) from error
    if bool(torch.isnan(rows[0]).any() | torch.isnan(rows[1]).any()):
        raise InputError("the bounds hold NaN")
    if len({len(bound) for bound in rows} - {1}) > 1:
        raise InputError(
            f"there are lower bounds for {len(rows[0])} problems and upper ones for {len(rows[1])}"
        )
    low_rows, high_rows = torch.broadcast_tensors(*rows)
    return low_rows, high_rows
