"""What an objective is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Self

import torch
from torch import Tensor

from facetwalk.batching import move, take_rows
from facetwalk.types import InputError


class Objective(ABC):
    """A score for each row of a batch of outputs, always maximised."""

    @abstractmethod
    def __call__(self, outputs: Tensor) -> Tensor:
        """Scores `(B,)` of outputs `(B, ...)`."""

    def check(self, outputs: Tensor) -> None:  # noqa: B027 - most objectives score anything
        """Raise `InputError` where this objective cannot score such outputs."""

    @property
    def has_alternatives(self) -> bool:
        """Whether `alternative` gives anything else than the objective itself."""
        return type(self).alternative is not Objective.alternative

    def alternative(self, outputs: Any, turn: Tensor) -> Objective:
        """Another objective for each row to climb, which may lead where this one's does not.

        `outputs` are those of points near which rows start; `turn`, int64 `(B,)`, counts the
        members of a row's population, generation after generation. An objective that knows no
        other gives itself.
        """
        return self

    def as_alternative(self, count: int) -> Objective:
        """This objective for `count` rows, in the form in which `alternative` gives others: the
        same values and gradients by the same operations as theirs. Itself where there is none."""
        return self

    @property
    def count(self) -> int:
        """The number of problems that the objective's own data describe; 1 fits any number."""
        known = fields(self) if is_dataclass(self) else ()
        values = [getattr(self, field.name) for field in known]
        parts = [value.count for value in values if isinstance(value, Objective)]
        tensors = [value for value in values if isinstance(value, Tensor) and value.ndim]
        return max([*map(len, tensors), *parts], default=1)

    def select(self, rows: Tensor) -> Self:
        """The objectives of some problems, in the order of `rows` (int64)."""
        return take_rows(self, rows)

    def to(self, device: torch.device, dtype: torch.dtype) -> Self:
        """The same objective on another device, in another precision."""
        return move(self, device, dtype)


@dataclass(frozen=True, eq=False)
class Custom(Objective):
    """A plain callable as an objective, the same for all problems and with data of its own that
    nobody moves; `maximize` wraps callables by itself."""

    function: Callable[[Any], Tensor]

    def __call__(self, outputs: Any) -> Tensor:
        return self.function(outputs)

    @property
    def count(self) -> int:
        return 1

    def select(self, rows: Tensor) -> Self:
        return self

    def to(self, device: torch.device, dtype: torch.dtype) -> Self:
        return self


def as_objective(objective: Objective | Callable[[Any], Tensor]) -> Objective:
    """An `Objective` as it is; any other callable wrapped."""
    if isinstance(objective, Objective):
        return objective
    if not callable(objective):
        raise InputError(f"the objective must be callable; it is a {type(objective).__name__}")
    return Custom(objective)
