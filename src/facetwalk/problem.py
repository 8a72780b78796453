"""What to maximise, and what was found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from facetwalk.models import count_of
from facetwalk.objectives import Objective, as_objective
from facetwalk.solvers import Method
from facetwalk.spaces import Space
from facetwalk.types import InputError, Status


@dataclass(frozen=True)
class Problem:
    """Maximise `objective(model(x))` over `x` in `space`.

    The model takes `(B, *shape)` and is never changed. The objective is a
    `facetwalk.objectives.Objective` or any callable from outputs to scores `(B,)`. A space, an
    objective or a model with data for several problems makes a batch of problems.
    """

    model: nn.Module
    objective: Objective | Callable[[Any], Tensor]
    space: Space

    def __post_init__(self) -> None:
        if not isinstance(self.model, nn.Module):
            raise InputError(
                f"the model must be a torch.nn.Module; it is a {type(self.model).__name__}"
            )
        if not isinstance(self.space, Space):
            raise InputError(
                "the space must be a Box, a ball or another facetwalk.spaces.Space; "
                f"it is a {type(self.space).__name__}"
            )
        space, objective, model = self._counts()
        if not all((space, objective, model)):
            raise InputError("there is no problem to solve: the space or the objective has no rows")
        if len({space, objective, model} - {1}) > 1:
            raise InputError(
                f"the space describes {space} problems, the objective {objective} and the model "
                f"{model}: give each the same number, or one for all"
            )

    def _counts(self) -> tuple[int, int, int]:
        return self.space.count, as_objective(self.objective).count, count_of(self.model)

    @property
    def count(self) -> int:
        """How many problems this is."""
        return max(self._counts())


@dataclass(frozen=True)
class Evaluations:
    """Passes through the network that each problem took, over all its starts: int64 `(B,)`."""

    forward: Tensor
    backward: Tensor
    probe: Tensor
    """Forward-mode passes, which measure hyperplane normals."""


@dataclass(frozen=True)
class Trace:
    """The best value so far against the gradient evaluations of each start."""

    evaluations: Tensor
    """int64 `(G,)`."""
    best: Tensor
    """`(B, G)`: the best over all starts."""


@dataclass(frozen=True)
class Result:
    """What `maximize` found. Tensors have one row a problem."""

    x: Tensor
    """The best point found, inside the space."""
    value: Tensor
    """The objective at `x`, evaluated anew."""
    initial_value: Tensor
    """The objective at the first start."""
    status: tuple[Status, ...]
    evaluations: Evaluations
    trace: Trace | None
    seconds: float
    solver: Method
    """What was run; for `Auto`, what it planned."""
    seed: int | Tensor
