"""A loss of its own for each row: what members of a population climb."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from facetwalk.objectives.classes import Classes, at, best_other


@dataclass(frozen=True, eq=False)
class MixedLosses(Classes):
    """For each row its own loss away from `labels`.

    By `kind`, `(B,)`: 0 the cross-entropy, 1 the margin, 2 the margin of the class `targets`.
    """

    targets: Tensor
    kind: Tensor

    def __call__(self, outputs: Tensor) -> Tensor:
        true = at(outputs, self.labels)
        margin = best_other(outputs, self.labels) - true
        one = at(outputs, self.targets) - true
        entropy = outputs.logsumexp(1) - true
        return torch.where(self.kind == 0, entropy, torch.where(self.kind == 1, margin, one))


@dataclass(frozen=True, eq=False)
class MixedTargetedLosses(Classes):
    """For each row its own loss towards `labels`; by `kind`, `(B,)`: 0 cross-entropy, 1 margin."""

    kind: Tensor

    def __call__(self, outputs: Tensor) -> Tensor:
        goal = at(outputs, self.labels)
        margin = goal - best_other(outputs, self.labels)
        return torch.where(self.kind == 0, goal - outputs.logsumexp(1), margin)
