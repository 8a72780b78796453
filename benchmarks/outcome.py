"""Images under attack, and what an attack did to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from networks import Case
from torch import Tensor, nn

from facetwalk.objectives import Margin
from facetwalk.precision import products_in
from facetwalk.spaces import BALLS, Space


@dataclass(frozen=True)
class Target:
    """Images of one network, and the set in which they may move."""

    model: nn.Module
    images: Tensor
    labels: Tensor
    eps: float
    norm: str = "inf"

    @classmethod
    def of(cls, case: Case, device: str, images: slice = slice(None)) -> Target:
        """Some images of a case, on a device."""
        pixels, labels = case.images()
        model = case.load().to(device)
        for weight in model.parameters():
            weight.requires_grad_(False)
        pixels, labels = pixels[images].to(device), labels[images].to(device)
        return cls(model, pixels, labels, case.eps, case.norm)

    @property
    def space(self) -> Space:
        """Where each image may move."""
        return BALLS[self.norm](self.images, self.eps, bounds=(0, 1))

    def select(self, rows: Tensor) -> Target:
        return replace(self, images=self.images[rows], labels=self.labels[rows])


@dataclass
class Outcome:
    """What an attack did to each image."""

    margin: Tensor
    """The highest found, re-evaluated."""
    gradients: Tensor
    """Gradient evaluations spent, int64 `(B,)`."""
    forwards: Tensor
    seconds: float = 0.0
    notes: dict[str, str] = field(default_factory=dict)

    @property
    def solved(self) -> Tensor:
        return self.margin > 0


Attack = Callable[[Target, int, int], Outcome]
"""`(target, gradient evaluations, seed) -> Outcome`."""


def untouched(target: Target) -> Outcome:
    """Before any attack: some images are misclassified as they are, in full precision."""
    nothing = torch.zeros(len(target.labels), dtype=torch.int64)
    with torch.no_grad(), products_in("full"):
        margin = Margin(target.labels)(target.model(target.images))
    return Outcome(margin, nothing, nothing.clone())
