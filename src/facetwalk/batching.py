"""Trees of tensors whose first dimension is the batch: pick rows, move devices."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

T = TypeVar("T")


def map_tensors(function: Callable[[Tensor], Tensor], tree: T) -> T:
    """Apply `function` to every tensor in nested dataclasses, lists, tuples and dicts.

    Modules are left alone.
    """
    value: Any = tree
    if isinstance(value, Tensor):
        return function(value)  # pyright: ignore[reportReturnType]
    if isinstance(value, nn.Module):
        return tree
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(map_tensors(function, item) for item in value))  # pyright: ignore
    if isinstance(value, (list, tuple)):
        return type(value)(map_tensors(function, item) for item in value)  # pyright: ignore
    if isinstance(value, dict):
        mapped: Any = copy.copy(value)  # of the same kind, with attributes of its own
        for key, item in value.items():
            mapped[key] = map_tensors(function, item)
        return mapped
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {
            field.name: map_tensors(function, getattr(value, field.name))
            for field in dataclasses.fields(value)
        }
        other: Any = object.__new__(type(value))
        for name, item in fields.items():
            object.__setattr__(other, name, item)
        return other
    return tree


def take_rows(tree: T, rows: Tensor) -> T:
    """Keep `rows` of every tensor; numbers and tensors with one row serve all and stay."""
    return map_tensors(
        lambda t: t if t.ndim == 0 or t.shape[0] == 1 else t[rows.to(t.device)], tree
    )


def keep_rows(tree: T, rows: Tensor) -> T:
    """Keep `rows` of every tensor, for a tree in which every tensor has a row per problem."""
    return map_tensors(lambda t: t[rows], tree)


def move(tree: T, device: torch.device, dtype: torch.dtype) -> T:
    """Send every tensor to `device`, and the floating-point ones to `dtype`."""
    return map_tensors(
        lambda t: t.to(device=device, dtype=dtype) if t.is_floating_point() else t.to(device), tree
    )


def per_row(values: Tensor, like: Tensor) -> Tensor:
    """Reshape `(B,)` to `(B, 1, ..., 1)` so that it broadcasts against `like`."""
    return values.reshape(-1, *[1] * (like.ndim - 1))


def laid_out_like(model: Tensor, x: Tensor) -> Tensor:
    """`x` with its channels last in memory where `model` has them so: the two meet in many passes.

    >>> last = torch.zeros(2, 3, 4, 4).to(memory_format=torch.channels_last)
    >>> laid_out_like(last, torch.zeros(6, 3, 4, 4)).stride()
    (48, 1, 12, 3)
    """
    if model.ndim == 4 and model.is_contiguous(memory_format=torch.channels_last):
        return x.contiguous(memory_format=torch.channels_last)
    return x


def flat_rows(x: Tensor) -> Tensor:
    """Each row of `(B, ...)` in one dimension, `(B, entries)`.

    >>> flat_rows(torch.zeros(3)).shape
    torch.Size([3, 1])
    """
    return x.flatten(1) if x.ndim > 1 else x[:, None]


def row_norm(x: Tensor) -> Tensor:
    """The L2 norm of each row of `(B, ...)`, shape `(B,)`."""
    return torch.linalg.vector_norm(flat_rows(x), dim=1)


def unit_rows(x: Tensor) -> Tensor:
    """Each row of `(B, ...)` divided by its L2 norm; zero stays zero.

    The norm is computed in double precision, in which squares of tiny entries do not vanish.
    """
    length = torch.linalg.vector_norm(x.flatten(1), dim=1, dtype=torch.float64)
    return x / per_row(length.to(x.dtype).clamp_min_(torch.finfo(x.dtype).tiny), x)
