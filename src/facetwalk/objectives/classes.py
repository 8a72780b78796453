"""What the objectives on classes share."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from facetwalk.objectives.base import Objective
from facetwalk.types import InputError


@dataclass(frozen=True, eq=False)
class Classes(Objective):
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
        check_logits(outputs)
        for name in ("labels", "targets"):
            given, classes = getattr(self, name, self.labels), outputs.shape[1]
            if bool(((given < 0) | (given >= classes)).any()):
                raise InputError(
                    f"{name} run from {int(given.min())} to {int(given.max())}, and the "
                    f"model has classes 0 to {classes - 1}"
                )


def check_logits(outputs: Tensor) -> None:
    """Raise `InputError` for outputs that are no logits `(B, classes)`."""
    if outputs.ndim != 2 or outputs.shape[1] < 2:
        raise InputError(
            f"a classifier's output must be logits (B, classes) with two classes or more; "
            f"this model's has shape {tuple(outputs.shape)}"
        )


def at(outputs: Tensor, labels: Tensor) -> Tensor:
    """Each row's logit of its own class, `(B,)`."""
    return outputs.gather(1, labels.expand(len(outputs))[:, None]).squeeze(1)


def without(outputs: Tensor, labels: Tensor) -> Tensor:
    """The logits with minus infinity in the place of each row's own class."""
    return outputs.scatter(1, labels.expand(len(outputs))[:, None], -torch.inf)


def best_other(outputs: Tensor, labels: Tensor) -> Tensor:
    """The largest logit of all but each row's own class, `(B,)`."""
    return without(outputs, labels).amax(1)
