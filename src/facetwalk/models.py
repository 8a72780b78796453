"""Models: what is asked of them, and those that hold data for each problem of a batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Self

import torch
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

    def load(self, other: nn.Module) -> bool:
        """Take over the data of another model's problems, in place; False where this cannot be.

        The two have the same parts and parameters.
        """
        return False


def require_eval(model: nn.Module) -> None:
    """Raise `ModelError` if the model or a part of it is in train mode."""
    if any(getattr(part, "training", False) for part in model.modules()):  # TorchScript has none
        raise ModelError(
            "the model (or a part of it) is in train mode, in which dropout and batch norm make "
            "outputs random: call model.eval() first"
        )


def untouched_random_state(device: torch.device) -> AbstractContextManager[None]:
    """Within this context a model may draw random numbers, and leaves no trace of it."""
    return torch.random.fork_rng(devices=[device] if device.type == "cuda" else [])


def model_of(model: nn.Module, rows: Tensor) -> nn.Module:
    """The model of some problems: the same for all, unless it has data for each."""
    return model.select(rows) if isinstance(model, PerProblemModel) else model


def count_of(model: nn.Module) -> int:
    """The number of problems that the model's own data describe; 1 fits any number."""
    return model.count if isinstance(model, PerProblemModel) else 1
