"""What a space is."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar, Self

import torch
from torch import Tensor

from facetwalk.batching import move, take_rows
from facetwalk.streams import Streams


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

    shares_room: ClassVar[bool] = False
    """Whether a coordinate that moves far leaves less room to the others, as in L2 and L1 balls."""

    @property
    def scale(self) -> Tensor:
        """The unit in which distances to hyperplanes are measured, broadcastable to `(B, *shape)`.

        Half the diagonal, `radius * sqrt(n)`, of a box or an L-infinity ball (in each coordinate,
        where the sides differ). A point of an L2 or L1 ball comes a radius nearer to a hyperplane
        at most, and one of a box by the root of as many radii as the neuron has inputs; so that a
        width means as much there, the unit of these balls is that of a box with 100 inputs (or n,
        if there are fewer).
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
        rounding = torch.finfo(x.dtype).eps
        tolerance = (1e-5 + rounding) * self.radius + rounding * self.center.abs()
        return ((self.project(x) - x).abs() <= tolerance).flatten(1).all(1)

    def ascent(self, gradient: Tensor) -> Tensor:
        """The step that increases a linear function the most, one radius long.

        In the set's own geometry: the gradient's signs for boxes and L-infinity balls, its
        direction for L2 balls, its cubes for L1 balls.
        """
        return self.radius * gradient.sign()

    def select(self, rows: Tensor) -> Self:
        """The sets of some problems, in the order of `rows` (int64)."""
        return take_rows(self, rows)

    def to(self, device: torch.device, dtype: torch.dtype) -> Self:
        """The same sets on another device, for points in another precision.

        The numbers of a space of one's own are in it, too; boxes and balls keep theirs in 32 bits
        or more, and round points of 16 into the set.
        """
        return move(self, device, dtype)
