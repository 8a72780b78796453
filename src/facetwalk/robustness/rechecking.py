"""Looks again at what an attack says it has found."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from facetwalk.objectives import Objective
from facetwalk.robustness.inputs import outputs_of


def margins(model: nn.Module, x: Tensor, margin: Objective, batch_size: int) -> Tensor:
    """The margin at each row of `x`, `(N,)`, by a fresh pass over batches of this size."""
    return margin(outputs_of(model, x, batch_size))


def fooled_alone(model: nn.Module, x: Tensor, margin: Objective, in_batch: Tensor) -> Tensor:
    """Which rows have a positive margin when they pass alone; only those that have one
    `in_batch`, bool `(N,)`, are asked."""
    rows = in_batch.nonzero().squeeze(1)
    alone = torch.zeros_like(in_batch)
    if len(rows):
        alone[rows] = margins(model, x[rows], margin.select(rows), 1) > 0
    return alone
