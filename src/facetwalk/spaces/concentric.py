"""Balls around one centre as one ball."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from facetwalk.batching import per_row
from facetwalk.spaces.balls import L1Ball, L2Ball, SharingBall, as_sizes
from facetwalk.spaces.bounds import Bounds
from facetwalk.spaces.box import Box
from facetwalk.spaces.shortening import within_both


@dataclass(frozen=True, init=False, eq=False)
class L1L2Ball(SharingBall):
    """Within Euclidean distance `eps` and absolute distance `total` of the centre, and `bounds`.

    >>> L1L2Ball(torch.zeros(1, 2), 1.0, 1.2).project(torch.tensor([[3.0, 4.0]]))
    tensor([[0.2258, 0.9742]])
    """

    total: Tensor
    """`(B, 1, ..., 1)`."""

    def __init__(
        self,
        centers: Tensor,
        eps: float | Tensor,
        total: float | Tensor,
        bounds: Bounds | None = None,
    ) -> None:
        super().__init__(centers, eps, bounds)
        totals = as_sizes("total", total, len(centers), self.eps.dtype, centers.device)
        self._set(total=per_row(totals, centers))

    @property
    def limits(self) -> dict[int, Tensor]:
        return {2: self.eps.flatten(1), 1: self.total.flatten(1)}

    def _shortened(self, size: Tensor, room: Tensor, limits: dict[int, Tensor]) -> Tensor:
        return within_both(size, room, limits[2], limits[1])


def by_centers(balls: Sequence[L2Ball | L1Ball]) -> list[list[L2Ball | L1Ball]]:
    """The balls in groups that have the same centres."""
    groups: list[list[L2Ball | L1Ball]] = []
    for ball in balls:
        same = (group for group in groups if bool((group[0].centers == ball.centers).all()))
        group = next(same, None)
        if group is None:
            groups.append([ball])
        else:
            group.append(ball)
    return groups


def holds_centers(box: Box, ball: SharingBall) -> bool:
    return bool(((ball.centers >= box.low) & (ball.centers <= box.high)).all())


def as_one_ball(balls: Sequence[L2Ball | L1Ball], box: Box | None) -> SharingBall:
    """What balls around one centre, and a box that holds it, have in common."""
    bounds = [*balls, *([] if box is None else [box])]
    low, high = bounds[0].low, bounds[0].high
    for each in bounds[1:]:
        low, high = torch.maximum(low, each.low), torch.minimum(high, each.high)
    rows = max(len(tensor) for tensor in (low, *(ball.centers for ball in balls)))
    centers = balls[0].centers.expand(rows, *balls[0].shape)
    eps = _smallest([ball for ball in balls if isinstance(ball, L2Ball)], rows)
    total = _smallest([ball for ball in balls if isinstance(ball, L1Ball)], rows)
    if total is None:
        assert eps is not None
        return L2Ball(centers, eps, (low, high))
    if eps is None:
        return L1Ball(centers, total, (low, high))
    return L1L2Ball(centers, eps, total, (low, high))


def _smallest(balls: Sequence[L2Ball | L1Ball], rows: int) -> Tensor | None:
    """The smallest radius of each problem, `(B,)`."""
    sizes = [ball.eps.flatten().expand(rows) for ball in balls]
    return torch.stack(sizes).amin(0) if sizes else None
