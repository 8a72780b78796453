"""The op table: every piecewise-linear function written as an affine part plus hinges.

A *hinge* is `max(z, 0)`: it has one hyperplane, one gate and one neuron for each entry of
`z`. ReLU is one hinge; a clamp with both bounds is two. To support another function, add a
decomposition here; nothing else changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Hinge = Callable[[Tensor], Tensor]
"""Stands for `z -> max(z, 0)`; interception passes a gated or recording version."""

Decomposition = Callable[..., Tensor | None]
"""`(hinge, input, *arguments) -> output`, or None where these arguments make no hinge."""


@dataclass(frozen=True)
class Op:
    """One entry of the table."""

    name: str
    decompose: Decomposition
    in_place: bool = False


_GUARD = 1e3
"""A bound this large guards against overflow; as a hinge it would cost precision."""


def _relu(hinge: Hinge, h: Tensor, inplace: bool = False) -> Tensor:
    return hinge(h)


def _clamp(hinge: Hinge, h: Tensor, min: Any = None, max: Any = None) -> Tensor | None:
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        inside = h if min is None else _maximum(hinge, h, _as_tensor(min, h))
        return inside if max is None else _minimum(hinge, inside, _as_tensor(max, h))
    low, high = (None if _is_guard(bound) else bound for bound in (min, max))
    if low is None and high is None:
        return None
    if low is not None and high is not None:
        low = low if low <= high else high  # torch gives max where the bounds cross
    inside = h
    if low is not None:
        inside = hinge(h) if low == 0 else low + hinge(h - low)
    if high is not None:
        inside = inside - hinge(h - high)
    if _is_guard(min):
        inside = inside.clamp(min=min)
    return inside.clamp(max=max) if _is_guard(max) else inside


def _is_guard(bound: Any) -> bool:
    return bound is not None and abs(bound) >= _GUARD


def _as_tensor(bound: Any, like: Tensor) -> Tensor:
    return bound if isinstance(bound, Tensor) else like.new_tensor(bound)


def _clamp_min(hinge: Hinge, h: Tensor, min: Any) -> Tensor | None:
    return _clamp(hinge, h, min=min)


def _clamp_max(hinge: Hinge, h: Tensor, max: Any) -> Tensor | None:
    return _clamp(hinge, h, max=max)


def _threshold(
    hinge: Hinge, h: Tensor, threshold: float, value: float, inplace: bool = False
) -> Tensor | None:
    if threshold != value:
        return None  # jumps at the threshold: not a continuous piecewise-linear function
    return _clamp(hinge, h, min=threshold)


def _relu6(hinge: Hinge, h: Tensor, inplace: bool = False) -> Tensor | None:
    return _clamp(hinge, h, 0.0, 6.0)


def _hardtanh(
    hinge: Hinge, h: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor | None:
    return _clamp(hinge, h, min_val, max_val)


def _hardsigmoid(hinge: Hinge, h: Tensor, inplace: bool = False) -> Tensor:
    return (hinge(h + 3) - hinge(h - 3)) / 6


def _softshrink(hinge: Hinge, h: Tensor, lambd: float = 0.5) -> Tensor:
    return h + lambd - hinge(h + lambd) + hinge(h - lambd)


def _leaky_relu(
    hinge: Hinge, h: Tensor, negative_slope: float = 0.01, inplace: bool = False
) -> Tensor:
    return negative_slope * h + (1 - negative_slope) * hinge(h)


def _prelu(hinge: Hinge, h: Tensor, weight: Tensor) -> Tensor:
    if weight.numel() > 1:
        weight = weight.reshape(-1, *[1] * (h.ndim - 2))
    return weight * h + (1 - weight) * hinge(h)


def _rrelu(
    hinge: Hinge,
    h: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor | None:
    return None if training else _leaky_relu(hinge, h, (lower + upper) / 2)


def _abs(hinge: Hinge, h: Tensor) -> Tensor:
    return 2 * hinge(h) - h


def _maximum(hinge: Hinge, h: Tensor, other: Any = None, *reduction: Any, **named: Any) -> Any:
    if not isinstance(other, Tensor) or reduction or named:
        return None  # a maximum over a dimension
    far = _far(h, other)
    larger = other + hinge(torch.where(far, 0, h - other))
    return torch.where(far, torch.maximum(h, other), larger)


def _minimum(hinge: Hinge, h: Tensor, other: Any = None, *reduction: Any, **named: Any) -> Any:
    if not isinstance(other, Tensor) or reduction or named:
        return None
    far = _far(h, other)
    smaller = h - hinge(torch.where(far, 0, h - other))
    return torch.where(far, torch.minimum(h, other), smaller)


def _far(h: Tensor, other: Tensor) -> Tensor:
    """Where one of the two is a guard, or a mask: there no hinge is seen."""
    return (h.abs() >= _GUARD) | (other.abs() >= _GUARD)


def _entries() -> dict[Any, Op]:
    decompositions: dict[str, Decomposition] = {
        "relu": _relu,
        "clamp": _clamp,
        "clip": _clamp,
        "clamp_min": _clamp_min,
        "clamp_max": _clamp_max,
        "threshold": _threshold,
        "relu6": _relu6,
        "hardtanh": _hardtanh,
        "hardsigmoid": _hardsigmoid,
        "softshrink": _softshrink,
        "leaky_relu": _leaky_relu,
        "prelu": _prelu,
        "rrelu": _rrelu,
        "abs": _abs,
        "absolute": _abs,
        "maximum": _maximum,
        "minimum": _minimum,
        "max": _maximum,
        "min": _minimum,
    }
    table: dict[Any, Op] = {}
    for name, decompose in decompositions.items():
        for home in (torch, torch.Tensor, F):
            for spelling, in_place in ((name, False), (name + "_", True)):
                function = getattr(home, spelling, None)
                if function is not None:
                    table[function] = Op(name, decompose, in_place)
    table[torch.Tensor.__abs__] = Op("abs", _abs)
    return table


OPS: dict[Any, Op] = _entries()
"""From each torch function to its decomposition; in-place spellings included."""
