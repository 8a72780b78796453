"""Tells from the autograd graph of a computation whether it is affine, operation by operation.

To support another operation, add the name of its autograd node here; nothing else changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from facetwalk.types import ModelError

_LINEAR = {
    *("AccumulateGrad", "Add", "Sub", "Rsub", "Neg", "Sum", "Mean", "Cat", "Stack"),
    *("View", "UnsafeView", "ReshapeAlias", "Alias", "AsStrided", "Clone", "CopyBackwards"),
    "_OverwritingBackward",
    *("Permute", "Transpose", "T", "Squeeze", "Unsqueeze", "Expand", "Repeat", "Flip", "Roll"),
    *("Slice", "Select", "Split", "SplitWithSizes", "Unbind", "Index", "IndexSelect", "Gather"),
    *("ConstantPadNd", "AvgPool2D", "MkldnnAdaptiveAvgPool2D", "AdaptiveAvgPool2D"),
    *("NativeBatchNorm", "CudnnBatchNorm"),
}
"""Affine in all their operands together; of batch norm this is so in eval mode."""

_PRODUCTS = {
    **dict.fromkeys(("Mul", "Mm", "Bmm", "Mv", "Addmm", "Baddbmm"), slice(-2, None)),
    **dict.fromkeys(("Linear", "Convolution"), slice(2)),
}
"""Affine while only one of the two factors depends on the input; which operands those are."""


def check_affine(outputs: Sequence[Tensor]) -> None:
    """Raise `ModelError` unless every tensor is an affine function of all leaves together."""
    seen: set[Any] = set()
    waiting = [output.grad_fn for output in outputs]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        operands = [operand for operand, _ in node.next_functions]
        if not _is_affine(_name(node), operands):
            raise ModelError(
                f"the network uses {_name(node)} where nothing is proven of it: between ReLUs (and "
                "others of their kind) only linear layers, convolutions, batch norm, average "
                "pooling, sums and reshapes are known"
            )
        waiting += operands


def _name(node: Any) -> str:
    return node.name().rpartition("::")[2].removesuffix("Backward0").removesuffix("Backward1")


def _is_affine(name: str, operands: list[Any]) -> bool:
    if name == "Div":
        return operands[-1] is None or len(operands) == 1
    if name in _PRODUCTS:
        return sum(operand is not None for operand in operands[_PRODUCTS[name]]) < 2
    return name in _LINEAR
