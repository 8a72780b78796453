"""Counts what passes through a network, for attacks that do not count themselves."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor, nn


class Rows(NamedTuple):
    """Rows that passed forward, and back."""

    forward: int
    backward: int


class Counted(nn.Module):
    """A network that counts the rows that pass through it."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self._forward_rows = self._backward_rows = 0
        self.train(model.training)

    def forward(self, x: Tensor) -> Tensor:
        self._forward_rows += len(x)
        logits = self.model(x)
        if logits.requires_grad:
            logits.register_hook(self._count_backward)
        return logits

    def _count_backward(self, gradient: Tensor) -> None:
        self._backward_rows += len(gradient)

    def take(self) -> Rows:
        """What was counted since this was last asked."""
        rows = Rows(self._forward_rows, self._backward_rows)
        self._forward_rows = self._backward_rows = 0
        return rows
