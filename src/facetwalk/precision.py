"""How exactly networks are evaluated during a search; results are always evaluated in full."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch
from torch import Tensor

Precision = Literal["full", "tf32", "bf16"]
"""`full`: as the model's type says; `tf32`: products of float32 in TensorFloat-32, on GPUs that
have it; `bf16`: `torch.autocast` to bfloat16."""


@contextmanager
def products_in(precision: Precision | None) -> Iterator[None]:
    """Within this context float32 products are rounded as asked, or as torch is set."""
    if precision is None:
        yield
        return
    allowed = precision != "full"
    matmul, convolution = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("high" if allowed else "highest")
    torch.backends.cudnn.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(matmul)
        torch.backends.cudnn.allow_tf32 = convolution


def rounds_products(x: Tensor) -> bool:
    """Whether torch, as it is set, rounds products of `x` to fewer digits than `x` has.

    >>> rounds_products(torch.zeros(1, dtype=torch.float64))
    False
    """
    convolutions = x.is_cuda and torch.backends.cudnn.allow_tf32
    matrices = torch.get_float32_matmul_precision() != "highest"
    return x.dtype == torch.float32 and (convolutions or matrices)
