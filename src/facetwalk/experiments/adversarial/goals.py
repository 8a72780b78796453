"""What an attack is after, and how every attack is judged."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from facetwalk.objectives import (
    CrossEntropy,
    Margin,
    Objective,
    TargetedCrossEntropy,
    TargetedDLR,
    TargetedMargin,
)
from facetwalk.streams import Streams

_TARGET_SEED = 2024
"""Of the targets, which are the same for every attack and every seed of it."""


@dataclass(frozen=True, eq=False)
class Judge(Objective):
    """The paper's objective, with success above all: for best-so-far points of every attack.

    `loss + log(classes)` where the goal is reached, `loss` elsewhere. An image that is seen right
    has a cross-entropy of at most `log(classes)`, a wrong one of at least `log(2)`: so every
    success is worth more than any failure, and of two successes the one with the higher loss.

    >>> labels = torch.tensor([0, 0])
    >>> judge = Judge(Margin(labels), CrossEntropy(labels))
    >>> [round(value, 2) for value in judge(torch.tensor([[0.1, 0.0], [0.0, 0.1]])).tolist()]
    [0.64, 1.44]
    """

    margin: Objective
    loss: Objective

    def __call__(self, outputs: Tensor) -> Tensor:
        return self.loss(outputs) + math.log(outputs.shape[1]) * (self.margin(outputs) > 0)

    def check(self, outputs: Tensor) -> None:
        self.margin.check(outputs)

    def alternative(self, outputs: Tensor, turn: Tensor) -> Objective:
        return self.loss.alternative(outputs, turn)


@dataclass(frozen=True)
class Goal:
    """Away from true classes, or towards targets, both `(N,)`."""

    labels: Tensor
    targets: Tensor | None = None

    @property
    def loss(self) -> Objective:
        """The paper's J: the cross-entropy of the label, or minus that of the target."""
        if self.targets is None:
            return CrossEntropy(self.labels)
        return TargetedCrossEntropy(self.targets)

    @property
    def margin(self) -> Objective:
        """Positive where the goal is reached."""
        return Margin(self.labels) if self.targets is None else TargetedMargin(self.targets)

    @property
    def dlr(self) -> Objective:
        """What APGD climbs: the cross-entropy, or towards targets the targeted DLR loss."""
        if self.targets is None:
            return self.loss
        return TargetedDLR(self.labels, self.targets)

    @property
    def judge(self) -> Judge:
        return Judge(self.margin, self.loss)


def random_targets(labels: Tensor, classes: int) -> Tensor:
    """A random wrong class for each image, `(N,)`; always the same ones.

    >>> labels = torch.arange(1000) % 10
    >>> targets = random_targets(labels, 10)
    >>> bool((targets == labels).any()), targets.unique().tolist()
    (False, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """
    numbers = torch.arange(len(labels))
    drawn = Streams.from_seeds(numbers + _TARGET_SEED, torch.zeros_like(numbers)).uniform(())
    step = 1 + (drawn * (classes - 1)).long()
    return (labels.cpu() + step).to(labels.device) % classes
