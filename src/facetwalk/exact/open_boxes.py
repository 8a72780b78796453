"""The boxes that a branch and bound has yet to look at."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import torch
from torch import Tensor


class Boxes(NamedTuple):
    """Boxes as columns, each with the goal that it is searched for and a bound on it."""

    low: Tensor
    """`(inputs, B)`."""
    high: Tensor
    goal: Tensor
    """int64 `(B,)`."""
    bound: Tensor
    """`(B,)`."""

    def take(self, columns: Tensor | slice) -> Boxes:
        """Some of the boxes."""
        return Boxes(
            self.low[:, columns], self.high[:, columns], self.goal[columns], self.bound[columns]
        )


class OpenBoxes:
    """Gives out the boxes with the largest bounds first, in whole lots; beyond `most` boxes
    it takes up no more than those last put in, and gives them out first.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.count = 0
        self._heap: list[tuple[float, int, Boxes]] = []
        self._urgent: list[Boxes] = []
        self._lots = 0

    def put(self, boxes: Boxes) -> None:
        """Add boxes: the half with the larger bounds as one lot, the others as another."""
        self.count += len(boxes.bound)
        if self.count > self.most:
            self._urgent.append(boxes)
            return
        order = boxes.bound.argsort(descending=True)
        for half in order.tensor_split(2):
            if len(half):
                lot = boxes.take(half)
                self._lots += 1
                heapq.heappush(self._heap, (-lot.bound[0].item(), self._lots, lot))

    def pop(self, size: int) -> Boxes:
        """About `size` boxes, or all if there are fewer."""
        lots, found = [], 0
        while found < size and self.count > found:
            lots.append(self._urgent.pop() if self._urgent else heapq.heappop(self._heap)[2])
            found += len(lots[-1].bound)
        self.count -= found
        if len(lots) == 1:
            return lots[0]
        return Boxes(
            torch.cat([lot.low for lot in lots], 1),
            torch.cat([lot.high for lot in lots], 1),
            torch.cat([lot.goal for lot in lots]),
            torch.cat([lot.bound for lot in lots]),
        )

    def bound(self) -> float:
        """The largest bound of all open boxes."""
        urgent = [lot.bound.max().item() for lot in self._urgent]
        first = [-self._heap[0][0]] if self._heap else []
        return max(first + urgent, default=-torch.inf)
