"""Runs a model with every hinge replaced, without touching the model.

A `TorchFunctionMode` around `model(x)` sees functional, method, in-place and module forms
alike, follows data-dependent control flow, and leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from facetwalk.sites.ops import OPS

Replacement = Callable[[int, Tensor], Tensor]
"""`(number of the hinge within this call, z) -> what stands for max(z, 0)`."""


class Interception(TorchFunctionMode):
    """Within this context every hinge of a known function is `replacement`'s."""

    def __init__(self, replacement: Replacement) -> None:
        super().__init__()
        self.replacement = replacement
        self.count = 0
        """Hinges evaluated so far."""
        self.op_name = ""
        """The function whose hinges are being evaluated."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        op = OPS.get(func)
        operand = args[0] if args else kwargs.get("input")
        if op is None or not _has_hinges(operand) or "out" in kwargs:
            return func(*args, **kwargs)
        in_place = op.in_place or kwargs.get("inplace", False)
        pre_activation = operand.clone() if in_place else operand
        rest = {key: value for key, value in kwargs.items() if key != "input"}
        self.op_name = op.name
        output = op.decompose(self._hinge, pre_activation, *args[1:], **rest)
        if output is None:
            return func(*args, **kwargs)
        return _overwritten(operand, output) if in_place else output

    def _hinge(self, z: Tensor) -> Tensor:
        number, self.count = self.count, self.count + 1
        return self.replacement(number, z)


def _has_hinges(operand: Any) -> bool:
    return isinstance(operand, Tensor) and operand.is_floating_point()


def _overwritten(operand: Tensor, output: Tensor) -> Tensor:
    """`operand` with the values of `output`, as an in-place function leaves it."""
    if torch.is_grad_enabled() and operand.requires_grad and not operand._is_view():
        return _Overwriting.apply(operand, output)  # pyright: ignore[reportReturnType]
    return operand.copy_(output)


class _Overwriting(torch.autograd.Function):
    """`copy_` whose gradient goes to the source alone: torch's own makes zeros for the target, and
    adds them to what comes back through the source."""

    @staticmethod
    def forward(ctx: Any, target: Tensor, source: Tensor) -> Tensor:
        ctx.mark_dirty(target)
        return target.copy_(source)

    @staticmethod
    def backward(ctx: Any, *of_outputs: Tensor) -> tuple[None, Tensor]:
        return None, of_outputs[0]
