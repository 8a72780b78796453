"""Objectives on outputs of any kind: one entry, the distance to a reference, a specification."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from facetwalk.batching import flat_rows
from facetwalk.objectives.base import Objective
from facetwalk.types import InputError


@dataclass(frozen=True, eq=False)
class Output(Objective):
    """One entry of the output; `sign=-1` to minimise it.

    >>> import torch
    >>> Output(1)(torch.tensor([[3.0, 4.0], [5.0, 6.0]])).tolist()
    [4.0, 6.0]
    """

    index: int = 0
    sign: int = 1

    def __call__(self, outputs: Tensor) -> Tensor:
        return self.sign * flat_rows(outputs)[:, self.index]

    def check(self, outputs: Tensor) -> None:
        size = flat_rows(outputs).shape[1]
        if not -size <= self.index < size:
            raise InputError(f"output {self.index} was asked for, and the model has {size} outputs")


@dataclass(frozen=True, eq=False)
class Distance(Objective):
    """Minus the mean p-th power of the difference to references `(B or 1, *output)`.

    For latent codes and inversion: the best output is the reference itself, with score 0.
    """

    reference: Tensor
    p: int = 2

    def __call__(self, outputs: Tensor) -> Tensor:
        difference = (outputs - self.reference).abs().pow(self.p)
        return -flat_rows(difference).mean(1)

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

    >>> import torch
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
        rows = (self.weights @ flat_rows(outputs)[:, :, None]).squeeze(2) + self.offsets
        return rows.amin(1)

    def check(self, outputs: Tensor) -> None:
        size = flat_rows(outputs).shape[1]
        if size != self.weights.shape[2]:
            raise InputError(
                f"the specification is on {self.weights.shape[2]} outputs, and the model has {size}"
            )
