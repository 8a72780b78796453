"""Turns an objective into goals: outputs of a network, the largest of which is the objective."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import torch
from torch import Tensor, nn

from facetwalk.batching import flat_rows
from facetwalk.exact.maxima import MaximaAsReLUs
from facetwalk.objectives import Linear, Margin, Output, TargetedMargin, as_objective
from facetwalk.types import InputError


class Goals(nn.Module):
    """Inputs `(B, *shape)` to goals `(B, K)`, whose maximum is the objective.

    A maximum over classes is left open, since each of its members can be bounded alone; those of
    two tensors, and minima, are written with ReLUs.

    >>> from facetwalk.objectives import Margin
    >>> goals = Goals(nn.Identity(), Margin(torch.tensor([1])))
    >>> goals(torch.tensor([[5.0, 2.0, 1.0]])).tolist()
    [[3.0, -1.0]]
    """

    def __init__(self, network: nn.Module, objective: Any) -> None:
        super().__init__()
        self.training = False  # and the network's own flags stay as they are
        self.network = network
        self.score = _score(as_objective(objective))

    def forward(self, x: Tensor) -> Tensor:
        with MaximaAsReLUs():
            return self.plain(x)

    def plain(self, x: Tensor) -> Tensor:
        """The same with maxima as they are, which lose no digits where one side is a far guard."""
        return self.score(self.network(x))

    def best(self, x: Tensor) -> Tensor:
        """The objective itself, `(B,)`."""
        with torch.no_grad():
            return self.plain(x.clone()).amax(1)


def _score(objective: Any) -> Callable[[Tensor], Tensor]:
    if objective.count != 1:
        raise InputError(
            f"a proof is about one problem, and the objective describes {objective.count}: "
            "pick one with objective.select"
        )
    if isinstance(objective, Output):
        return partial(_output, index=objective.index, sign=objective.sign)
    if isinstance(objective, Margin):
        return partial(_over_label, label=int(objective.labels))
    if isinstance(objective, TargetedMargin):
        return partial(_under_target, target=int(objective.labels))
    if isinstance(objective, Linear):
        if not bool(objective.weights.isfinite().all() & objective.offsets.isfinite().all()):
            raise InputError("a specification must have finite weights and offsets to be proven")
        return partial(_specification, weights=objective.weights[0], offsets=objective.offsets[0])
    raise InputError(
        f"the maximum of {type(objective).__name__} cannot be proven: use Output, Margin, "
        "TargetedMargin or Linear of facetwalk.objectives"
    )


def _output(outputs: Tensor, index: int, sign: int) -> Tensor:
    return sign * flat_rows(outputs)[:, index, None]


def _differences(outputs: Tensor, label: int) -> Tensor:
    """Each other logit minus that of the label, `(B, classes - 1)`."""
    others = [i for i in range(outputs.shape[1]) if i != label]
    return outputs[:, others] - outputs[:, label, None]


def _over_label(outputs: Tensor, label: int) -> Tensor:
    return _differences(outputs, label)


def _under_target(outputs: Tensor, target: int) -> Tensor:
    return _smallest(-_differences(outputs, target))


def _specification(outputs: Tensor, weights: Tensor, offsets: Tensor) -> Tensor:
    return _smallest(flat_rows(outputs) @ weights.to(outputs).T + offsets.to(outputs))


def _smallest(columns: Tensor) -> Tensor:
    return reduce(torch.minimum, columns.split(1, 1))
