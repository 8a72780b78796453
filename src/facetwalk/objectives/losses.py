"""Losses of classifiers, away from the true class and towards another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from facetwalk.objectives.base import Objective
from facetwalk.objectives.classes import Classes, at, best_other, without
from facetwalk.objectives.mixed import MixedLosses, MixedTargetedLosses
from facetwalk.types import InputError


@dataclass(frozen=True, eq=False)
class _Untargeted(Classes):
    """Away from the true labels."""

    def alternative(self, outputs: Any, turn: Tensor) -> Objective:
        """In turn the cross-entropy, the margin, and twice the margin of a single class."""
        at = turn % 4
        return self._mixed(outputs, kind=at.clamp(max=2), singles=turn // 4 * 2 + at // 3)

    def _mixed(self, outputs: Tensor, kind: Tensor, singles: Tensor) -> Objective:
        """Losses by `kind`. Single classes come by likelihood, the second first, since the margin
        climbs towards the likeliest; `singles` of them, `(B,)`, have had their turn."""
        likely = without(outputs, self.labels).argsort(dim=1, descending=True, stable=True)
        rank = (singles + 1) % (outputs.shape[1] - 1)
        target = likely.gather(1, rank[:, None]).squeeze(1)
        return MixedLosses(self.labels.expand(len(outputs)), target, kind)


@dataclass(frozen=True, eq=False)
class _Targeted(Classes):
    """Towards given classes."""

    def alternative(self, outputs: Any, turn: Tensor) -> Objective:
        """The cross-entropy and the margin in turn."""
        goal = getattr(self, "targets", self.labels).expand(len(outputs))
        return MixedTargetedLosses(goal, turn % 2)


@dataclass(frozen=True, eq=False)
class CrossEntropy(_Untargeted):
    """Cross-entropy against the true labels `(B,)`: an untargeted attack.

    >>> CrossEntropy(torch.tensor([0]))(torch.tensor([[0.0, 0.0]])).item()
    0.6931471824645996
    """

    def __call__(self, outputs: Tensor) -> Tensor:
        return F.cross_entropy(outputs, self.labels.expand(len(outputs)), reduction="none")

    def alternative(self, outputs: Any, turn: Tensor) -> Objective:
        """The cross-entropy itself every other turn, between them the margin and twice the margin
        of a single class."""
        at = turn % 6
        kind = torch.where(at % 2 == 0, 0, torch.where(at == 1, 1, 2))
        return self._mixed(outputs, kind, singles=turn // 6 * 2 + at // 5)


@dataclass(frozen=True, eq=False)
class TargetedCrossEntropy(_Targeted):
    """Minus the cross-entropy against the classes to be reached `(B,)`: a targeted attack."""

    def __call__(self, outputs: Tensor) -> Tensor:
        return -F.cross_entropy(outputs, self.labels.expand(len(outputs)), reduction="none")


@dataclass(frozen=True, eq=False)
class Margin(_Untargeted):
    """The best other logit minus the true one: positive where the input is misclassified.

    >>> Margin(torch.tensor([1]))(torch.tensor([[5.0, 2.0, 1.0]])).item()
    3.0
    """

    def __call__(self, outputs: Tensor) -> Tensor:
        return best_other(outputs, self.labels) - at(outputs, self.labels)

    def as_alternative(self, count: int) -> Objective:
        labels = self.labels.expand(count)
        return MixedLosses(labels, targets=labels, kind=torch.ones_like(labels))


@dataclass(frozen=True, eq=False)
class TargetedMargin(_Targeted):
    """The target's logit minus the best other: positive where the target class is reached."""

    def __call__(self, outputs: Tensor) -> Tensor:
        return at(outputs, self.labels) - best_other(outputs, self.labels)

    def as_alternative(self, count: int) -> Objective:
        labels = self.labels.expand(count)
        return MixedTargetedLosses(labels, kind=torch.ones_like(labels))


@dataclass(frozen=True, eq=False)
class DLR(_Untargeted):
    """Difference of logits ratio (Croce and Hein, 2020): a margin that scaling cannot change."""

    def __call__(self, outputs: Tensor) -> Tensor:
        first, _, third = outputs.topk(3, dim=1).values.unbind(1)
        margin = best_other(outputs, self.labels) - at(outputs, self.labels)
        return margin / (first - third + 1e-12)

    def check(self, outputs: Tensor) -> None:
        super().check(outputs)
        if outputs.shape[1] < 3:
            raise InputError("DLR needs three classes or more; use Margin for two")


@dataclass(frozen=True, eq=False)
class TargetedDLR(_Targeted):
    """The targeted form of DLR, from true `labels` towards `targets`, both `(B,)`."""

    targets: Tensor

    def __call__(self, outputs: Tensor) -> Tensor:
        first, _, third, fourth = outputs.topk(4, dim=1).values.unbind(1)
        margin = at(outputs, self.targets) - at(outputs, self.labels)
        return margin / (first - (third + fourth) / 2 + 1e-12)

    def check(self, outputs: Tensor) -> None:
        super().check(outputs)
        if outputs.shape[1] < 4:
            raise InputError(
                "targeted DLR needs four classes or more; use TargetedMargin for fewer"
            )
