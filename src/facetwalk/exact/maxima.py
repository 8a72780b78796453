"""Maxima and minima of two tensors, written with ReLUs.

A search in float32 leaves large operands alone, which are guards or masks, because ReLUs would lose
their digits. In float64 they lose fewer, and a proof must know every hinge.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode


class MaximaAsReLUs(TorchFunctionMode):
    """Within this context they are ReLUs, at any size.

    >>> with MaximaAsReLUs():
    ...     torch.maximum(torch.tensor([1.0, 5.0]), torch.tensor([3.0, 2.0])).tolist()
    [3.0, 5.0]
    """

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        others = (*args[1:], *kwargs.values())
        form = _FORMS.get(func) if any(map(_has_hinges, others)) else None
        if form is None or "out" in kwargs:
            return func(*args, **kwargs)
        return form(*args, **kwargs)


def _has_hinges(operand: Any) -> bool:
    return isinstance(operand, Tensor) and operand.is_floating_point()


def _maximum(input: Tensor, other: Any) -> Tensor:
    return other + torch.relu(input - other)


def _minimum(input: Tensor, other: Any) -> Tensor:
    return input - torch.relu(input - other)


def _clamp(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    inside = input if min is None else _maximum(input, min)
    return inside if max is None else _minimum(inside, max)


_SPELLINGS = {
    _maximum: ("maximum", "max"),
    _minimum: ("minimum", "min"),
    _clamp: ("clamp", "clip"),
}
_FORMS = {
    getattr(home, name): form
    for form, names in _SPELLINGS.items()
    for name in names
    for home in (torch, Tensor)
}
