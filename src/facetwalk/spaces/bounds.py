"""Lower and upper bounds as tensors, and copies of what the caller gave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from facetwalk.spaces.rounding import counting_type
from facetwalk.types import InputError

Bounds = tuple[float | Tensor, float | Tensor]


def as_bounds(
    low: float | Tensor, high: float | Tensor, shape: Sequence[int], dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Bounds as `(B or 1, *shape)` each; `dtype` is that of bounds given as numbers."""
    dtype = counting_type(type_of(low, high, otherwise=dtype))
    device = next((bound.device for bound in (low, high) if isinstance(bound, Tensor)), None)
    rows = []
    for bound in (_as_tensor(low, dtype, device), _as_tensor(high, dtype, device)):
        wide = owned(bound if bound.ndim > len(shape) else bound[None], dtype)
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


def as_pair(bounds: Any) -> Bounds:
    """The lower and the upper bound; none are infinite."""
    if bounds is None:
        return -torch.inf, torch.inf
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise InputError(
            f"bounds must be two, a lowest and a highest; they are {bounds!r}"
        ) from None
    return low, high


def type_of(*bounds: float | Tensor, otherwise: torch.dtype) -> torch.dtype:
    """The type of the first bound that is a tensor of floats."""
    tensors = (bound for bound in bounds if isinstance(bound, Tensor))
    return next((bound.dtype for bound in tensors if bound.is_floating_point()), otherwise)


def owned(x: Tensor, dtype: torch.dtype) -> Tensor:
    """A copy without gradients, in order in memory, but images with channels last stay so."""
    is_last = x.ndim == 4 and x.is_contiguous(memory_format=torch.channels_last)
    layout = torch.channels_last if is_last and not x.is_contiguous() else torch.contiguous_format
    return x.detach().to(dtype, copy=True, memory_format=layout)


def _as_tensor(bound: Any, dtype: torch.dtype, device: torch.device | None) -> Tensor:
    try:
        return torch.as_tensor(bound, dtype=dtype, device=device)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"a bound must be a number or a tensor; it is {bound!r}") from None
