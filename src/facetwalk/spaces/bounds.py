"""Lower and upper bounds as tensors."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from facetwalk.types import InputError

Bounds = tuple[float | Tensor, float | Tensor]


def as_bounds(
    low: float | Tensor, high: float | Tensor, shape: Sequence[int], dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Bounds as `(B or 1, *shape)` each; `dtype` is that of bounds given as numbers."""
    given = next((b.dtype for b in (low, high) if isinstance(b, Tensor)), dtype)
    dtype = given if given.is_floating_point else dtype
    rows = []
    for bound in (torch.as_tensor(low, dtype=dtype), torch.as_tensor(high, dtype=dtype)):
        wide = bound if bound.ndim > len(shape) else bound[None]
        try:
            rows.append(wide.expand(len(wide), *shape))
        except RuntimeError as error:
            raise InputError(
                f"bounds of shape {tuple(bound.shape)} do not fit inputs of shape {tuple(shape)}"
            ) from error
    if bool(torch.isnan(rows[0]).any() | torch.isnan(rows[1]).any()):
        raise InputError("the bounds hold NaN")
    if len({len(bound) for bound in rows} - {1}) > 1:
        raise InputError(
            f"there are lower bounds for {len(rows[0])} problems and upper ones for {len(rows[1])}"
        )
    low_rows, high_rows = torch.broadcast_tensors(*rows)
    return low_rows, high_rows
