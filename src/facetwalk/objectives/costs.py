"""Classes that cost more or less when they are decided for, as the actions of a policy do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from facetwalk.objectives.base import Objective
from facetwalk.objectives.classes import at, check_logits
from facetwalk.types import InputError


@dataclass(frozen=True, eq=False)
class _Costs(Objective):
    """What the objectives on costs share: what each class costs, `(B or 1, classes)`, checked."""

    costs: Tensor

    def __post_init__(self) -> None:
        if self.costs.ndim != 2 or not self.costs.is_floating_point():
            raise InputError(
                "costs must be floats (B, classes); they are "
                f"{self.costs.dtype} of shape {tuple(self.costs.shape)}"
            )

    def check(self, outputs: Tensor) -> None:
        check_logits(outputs)
        if not bool(torch.isfinite(self.costs).all()) or bool((self.costs < 0).any()):
            raise InputError("costs must be finite numbers, none below zero")
        if outputs.shape[1] != self.costs.shape[1]:
            raise InputError(
                f"there are costs of {self.costs.shape[1]} classes, and the model has "
                f"{outputs.shape[1]}"
            )


@dataclass(frozen=True, eq=False)
class ExpectedCost(_Costs):
    """The logarithm of what a class costs on average, drawn with the probabilities of softmax.

    >>> round(ExpectedCost(torch.tensor([[0.0, 2.0]]))(torch.tensor([[5.0, 5.0]])).item(), 6)
    0.0
    """

    def __call__(self, outputs: Tensor) -> Tensor:
        return _expected(self.costs, outputs)


@dataclass(frozen=True, eq=False)
class DecisionCost(_Costs):
    """What the likeliest class costs.

    Where that is nothing: minus the logits by which it leads over the first one that costs. Where
    it is something the value does not change with the logits; to climb on towards classes that
    cost more, the gradient there is that of the expected cost.

    >>> cost = DecisionCost(torch.tensor([[0.0, 2.0]]))
    >>> cost(torch.tensor([[5.0, 2.0], [5.0, 6.0]])).tolist()
    [-3.0, 2.0]
    """

    def __call__(self, outputs: Tensor) -> Tensor:
        free = self.costs.expand_as(outputs) == 0
        lead = outputs.masked_fill(~free, -torch.inf).amax(1)
        lead = lead - outputs.masked_fill(free, -torch.inf).amax(1)
        cost = at(self.costs.expand_as(outputs), outputs.argmax(1))
        climbed = _expected(self.costs, outputs)
        return torch.where(cost > 0, climbed + (cost - climbed).detach(), -lead)

    def alternative(self, outputs: Any, turn: Tensor) -> Objective:
        """In turn the expected cost, and away from what costs nothing."""
        return MixedCosts(self.costs, turn % 2)


@dataclass(frozen=True, eq=False)
class MixedCosts(_Costs):
    """By `kind`, `(B,)`: 0 the expected cost, 1 minus the log-probability of what costs nothing."""

    kind: Tensor

    def __call__(self, outputs: Tensor) -> Tensor:
        free = self.costs.expand_as(outputs) == 0
        away = -outputs.log_softmax(1).masked_fill(~free, -torch.inf).logsumexp(1)
        return torch.where(self.kind == 0, _expected(self.costs, outputs), away)


def _expected(costs: Tensor, outputs: Tensor) -> Tensor:
    """The logarithm of the expected cost, `(B,)`."""
    return (outputs.log_softmax(1) + costs.log()).logsumexp(1)
