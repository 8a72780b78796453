"""Models in which each problem of a batch has data of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

from torch import Tensor, nn

from facetwalk.types import ModelError


class PerProblemModel(nn.Module, ABC):
    """A model with parameters for each problem: one of many networks, a state that is fixed.

    `forward` gets `k * count` rows for some k; row r belongs to problem `r % count`. Fewer rows
    than `count` belong to the first problems.
    """

    @property
    @abstractmethod
    def count(self) -> int:
        """How many problems the model holds data for."""

    @abstractmethod
    def select(self, rows: Tensor) -> Self:
        """The model of some problems, in the order of `rows` (int64; repeats allowed)."""


def require_eval(model: nn.Module) -> None:
    """Raise `ModelError` if the model or a part of it is in train mode."""
    if any(part.training for part in model.modules()):
        raise ModelError(
            "the model (or a part of it) is in train mode, in which dropout and batch norm make "
            "outputs random: call model.eval() first"
        )


def model_of(model: nn.Module, rows: Tensor) -> nn.Module:
    """The model of some problems: the same for all, unless it has data for each."""
    return model.select(rows) if isinstance(model, PerProblemModel) else model


def count_of(model: nn.Module) -> int:
    """The number of problems that the model's own data describe; 1 fits any number."""
    return model.count if isinstance(model, PerProblemModel) else 1
