"""What is maximised: functions from a network's outputs `(B, ...)` to scores `(B,)`.

Any callable of that kind will do. One that holds data for each problem (labels, targets)
must derive from `Objective` as a dataclass whose tensor fields have a row a problem, so that
rows can be picked when problems are split into chunks or finish early.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Self

import torch
import torch.nn.functional as F
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

    def alternative(self, outputs: Any, turn: Tensor) -> Objective:
        """Another objective for each row to climb, which may lead where this one's does not.

        `outputs` are those of points near which rows start; `turn`, int64 `(B,)`, counts the
        members of a row's population, generation after generation. An objective that knows no
        other gives itself.
        """
        return self

    @property
    def count(self) -> int:
        """The number of problems that the objective's own data describe; 1 fits any number."""
        values = [getattr(self, field.name) for field in fields(self)]  # pyright: ignore
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
    """A plain callable as an objective; `maximize` wraps callables by itself."""

    function: Callable[[Any], Tensor]

    def __call__(self, outputs: Any) -> Tensor:
        return self.function(outputs)


@dataclass(frozen=True, eq=False)
class Guided(Objective):
    """Points are judged by `score`, and solvers climb `guide`.

    An attack that counts misclassifications, and follows the cross-entropy:

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


@dataclass(frozen=True, eq=False)
class Output(Objective):
    """One entry of the output; `sign=-1` to minimise it.

    >>> Output(1)(torch.tensor([[3.0, 4.0], [5.0, 6.0]])).tolist()
    [4.0, 6.0]
    """

    index: int = 0
    sign: int = 1

    def __call__(self, outputs: Tensor) -> Tensor:
        return self.sign * outputs.flatten(1)[:, self.index]

    def check(self, outputs: Tensor) -> None:
        size = outputs.flatten(1).shape[1]
        if not -size <= self.index < size:
            raise InputError(f"output {self.index} was asked for, and the model has {size} outputs")


@dataclass(frozen=True, eq=False)
class _Classes(Objective):
    """What the classification objectives share: class indices `(B,)`, checked."""

    labels: Tensor

    def __post_init__(self) -> None:
        for field in fields(self):
            given = torch.as_tensor(getattr(self, field.name))
            if given.ndim != 1 or given.is_floating_point() or given.dtype == torch.bool:
                raise InputError(
                    f"{field.name} must be class indices, an integer tensor (B,); they are "
                    f"{given.dtype} of shape {tuple(given.shape)}"
                )
            object.__setattr__(self, field.name, given.long())
        lengths = {len(getattr(self, field.name)) for field in fields(self)} - {1}
        if len(lengths) > 1:
            raise InputError(f"labels and targets differ in number: {sorted(lengths)}")

    def check(self, outputs: Tensor) -> None:
        _check_logits(outputs)
        for name in ("labels", "targets"):
            given, classes = getattr(self, name, self.labels), outputs.shape[1]
            if bool(((given < 0) | (given >= classes)).any()):
                raise InputError(
                    f"{name} run from {int(given.min())} to {int(given.max())}, and the "
                    f"model has classes 0 to {classes - 1}"
                )


@dataclass(frozen=True, eq=False)
class _Untargeted(_Classes):
    """Away from the true labels."""

    def alternative(self, outputs: Any, turn: Tensor) -> Objective:
        """The cross-entropy every other turn. Of the turns between, one in three the margin and
        two the margin of a single class: the second likeliest, the third, and so on.
        """
        between = turn // 2
        kind = torch.where(turn % 2 == 0, 0, torch.where(between % 3 == 0, 1, 2))
        likely = _without(outputs, self.labels).argsort(dim=1, descending=True, stable=True)
        rank = (between - between // 3) % (outputs.shape[1] - 1)
        target = likely.gather(1, rank[:, None]).squeeze(1)
        return MixedLosses(self.labels.expand(len(outputs)), target, kind)


@dataclass(frozen=True, eq=False)
class _Targeted(_Classes):
    """Towards given classes."""

    def alternative(self, outputs: Any, turn: Tensor) -> Objective:
        """The cross-entropy and the margin in turn."""
        goal = getattr(self, "targets", self.labels).expand(len(outputs))
        return MixedTargetedLosses(goal, turn % 2)


def _check_logits(outputs: Tensor) -> None:
    if outputs.ndim != 2 or outputs.shape[1] < 2:
        raise InputError(
            f"a classifier's output must be logits (B, classes) with two classes or more; "
            f"this model's has shape {tuple(outputs.shape)}"
        )


def _at(outputs: Tensor, labels: Tensor) -> Tensor:
    return outputs.gather(1, labels.expand(len(outputs))[:, None]).squeeze(1)


def _without(outputs: Tensor, labels: Tensor) -> Tensor:
    return outputs.scatter(1, labels.expand(len(outputs))[:, None], -torch.inf)


def _best_other(outputs: Tensor, labels: Tensor) -> Tensor:
    return _without(outputs, labels).amax(1)


@dataclass(frozen=True, eq=False)
class CrossEntropy(_Untargeted):
    """Cross-entropy against the true labels `(B,)`: an untargeted attack.

    >>> CrossEntropy(torch.tensor([0]))(torch.tensor([[0.0, 0.0]])).item()
    0.6931471824645996
    """

    def __call__(self, outputs: Tensor) -> Tensor:
        return F.cross_entropy(outputs, self.labels.expand(len(outputs)), reduction="none")


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
        return _best_other(outputs, self.labels) - _at(outputs, self.labels)


@dataclass(frozen=True, eq=False)
class TargetedMargin(_Targeted):
    """The target's logit minus the best other: positive where the target class is reached."""

    def __call__(self, outputs: Tensor) -> Tensor:
        return _at(outputs, self.labels) - _best_other(outputs, self.labels)


@dataclass(frozen=True, eq=False)
class DLR(_Untargeted):
    """Difference of logits ratio (Croce and Hein, 2020): a margin that scaling cannot change."""

    def __call__(self, outputs: Tensor) -> Tensor:
        first, _, third = outputs.topk(3, dim=1).values.unbind(1)
        margin = _best_other(outputs, self.labels) - _at(outputs, self.labels)
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
        margin = _at(outputs, self.targets) - _at(outputs, self.labels)
        return margin / (first - (third + fourth) / 2 + 1e-12)

    def check(self, outputs: Tensor) -> None:
        super().check(outputs)
        if outputs.shape[1] < 4:
            raise InputError(
                "targeted DLR needs four classes or more; use TargetedMargin for fewer"
            )


@dataclass(frozen=True, eq=False)
class MixedLosses(_Classes):
    """For each row its own loss away from `labels`.

    By `kind`, `(B,)`: 0 the cross-entropy, 1 the margin, 2 the margin of the class `targets`.
    """

    targets: Tensor
    kind: Tensor

    def __call__(self, outputs: Tensor) -> Tensor:
        true = _at(outputs, self.labels)
        margin = _best_other(outputs, self.labels) - true
        one = _at(outputs, self.targets) - true
        entropy = outputs.logsumexp(1) - true
        return torch.where(self.kind == 0, entropy, torch.where(self.kind == 1, margin, one))


@dataclass(frozen=True, eq=False)
class MixedTargetedLosses(_Classes):
    """For each row its own loss towards `labels`; by `kind`, `(B,)`: 0 cross-entropy, 1 margin."""

    kind: Tensor

    def __call__(self, outputs: Tensor) -> Tensor:
        goal = _at(outputs, self.labels)
        margin = goal - _best_other(outputs, self.labels)
        return torch.where(self.kind == 0, goal - outputs.logsumexp(1), margin)


@dataclass(frozen=True, eq=False)
class Distance(Objective):
    """Minus the mean p-th power of the difference to references `(B or 1, *output)`.

    For latent codes and inversion: the best output is the reference itself, with score 0.
    """

    reference: Tensor
    p: int = 2

    def __call__(self, outputs: Tensor) -> Tensor:
        difference = (outputs - self.reference).abs().pow(self.p)
        return -difference.flatten(1).mean(1)

    def check(self, outputs: Tensor) -> None:
        if outputs.shape[1:] != self.reference.shape[1:]:
            raise InputError(
                f"the references have shape {tuple(self.reference.shape)} and the model's outputs "
                f"{tuple(outputs.shape)}: they must agree after the first dimension"
            )


@dataclass(frozen=True, eq=False)
class Linear(Objective):
    """The smallest of several linear functions of the output: a specification to violate.

    `weights` is `(B or 1, rows, outputs)`, `offsets` `(B or 1, rows)`; the score is
    `min_r (weights_r . output + offsets_r)`, so a positive score meets every row.

    >>> unsafe = Linear(torch.tensor([[[1.0, -1.0], [0.0, 1.0]]]), torch.tensor([[0.0, -2.0]]))
    >>> unsafe(torch.tensor([[5.0, 3.0]])).item()
    1.0
    """

    weights: Tensor
    offsets: Tensor

    def __post_init__(self) -> None:
        if self.weights.ndim != 3 or self.weights.shape[:2] != self.offsets.shape:
            raise InputError(
                "a linear specification needs weights (B, rows, outputs) and offsets (B, rows); "
                f"they have shapes {tuple(self.weights.shape)} and {tuple(self.offsets.shape)}"
            )

    def __call__(self, outputs: Tensor) -> Tensor:
        rows = (self.weights @ outputs.flatten(1)[:, :, None]).squeeze(2) + self.offsets
        return rows.amin(1)

    def check(self, outputs: Tensor) -> None:
        size = outputs.flatten(1).shape[1]
        if size != self.weights.shape[2]:
            raise InputError(
                f"the specification is on {self.weights.shape[2]} outputs, and the model has {size}"
            )


def as_objective(objective: Objective | Callable[[Any], Tensor]) -> Objective:
    """An `Objective` as it is; any other callable wrapped."""
    if isinstance(objective, Objective):
        return objective
    if not callable(objective):
        raise InputError(f"the objective must be callable; it is a {type(objective).__name__}")
    return Custom(objective)
