"""Points judged by one objective on the way up another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from facetwalk.objectives.base import Objective, as_objective


@dataclass(frozen=True, eq=False)
class Guided(Objective):
    """Points are judged by `score`, and solvers climb `guide`.

    An attack that counts misclassifications, and follows the cross-entropy:

    >>> import torch
    >>> from facetwalk.objectives import CrossEntropy, Margin
    >>> labels = torch.tensor([1])
    >>> attack = Guided(Margin(labels), CrossEntropy(labels))
    >>> attack(torch.tensor([[5.0, 2.0, 1.0]])).item()
    3.0
    """

    score: Objective
    guide: Objective

    def __post_init__(self) -> None:
        object.__setattr__(self, "score", as_objective(self.score))
        object.__setattr__(self, "guide", as_objective(self.guide))

    def __call__(self, outputs: Any) -> Tensor:
        return self.score(outputs)

    def check(self, outputs: Tensor) -> None:
        self.score.check(outputs)
        self.guide.check(outputs)
