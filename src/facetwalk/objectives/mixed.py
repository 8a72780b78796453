"""A loss of its own for each row: what members of a population climb."""

from __future__ import annotations

from collections.abc import Sequence
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
        both = [labels.expand(len(outputs)) for labels in (self.targets, self.labels)]
        one, true = outputs.gather(1, torch.stack(both, 1)).unbind(1)
        others = outputs.logsumexp(1), best_other(outputs, self.labels), one
        return _chosen(others, self.kind) - true


@dataclass(frozen=True, eq=False)
class MixedTargetedLosses(Classes):
    """For each row its own loss towards `labels`; by `kind`, `(B,)`: 0 cross-entropy, 1 margin."""

    kind: Tensor

    def __call__(self, outputs: Tensor) -> Tensor:
        others = outputs.logsumexp(1), best_other(outputs, self.labels)
        return at(outputs, self.labels) - _chosen(others, self.kind)


def _chosen(columns: Sequence[Tensor], kind: Tensor) -> Tensor:
    """Of columns `(B,)` in each row the one that `kind` says: fewer operations than `where`."""
    return torch.stack([*columns], 1).gather(1, kind.expand(len(columns[0]))[:, None]).squeeze(1)
