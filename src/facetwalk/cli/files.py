"""Reads inputs from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from facetwalk import InputError

_TORCH_FILES = (".pt", ".pth")
READABLE = (".npy", ".npz", *_TORCH_FILES)


def read_tensor(path: Path) -> Tensor:
    """The one array of a file."""
    if path.suffix not in READABLE:
        raise InputError(f"{path} must be a file of a known kind: {', '.join(READABLE)}")
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    content = _content(path)
    try:
        return torch.as_tensor(content)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{path} holds {_named(content)}, not numbers") from error


def _content(path: Path) -> Any:
    """What a file holds; of an `.npz`, its one array."""
    is_torch = path.suffix in _TORCH_FILES
    try:
        if is_torch:
            return torch.load(path, map_location="cpu", weights_only=True)
        content = np.load(path, allow_pickle=False)
        if not isinstance(content, np.lib.npyio.NpzFile):
            return content
        with content:
            arrays = dict(content)
    except Exception as error:
        wanted = "a tensor saved by torch.save" if is_torch else "numbers saved by numpy"
        raise InputError(f"{path} cannot be read as an array: it must hold {wanted}") from error
    if len(arrays) != 1:
        names = ", ".join(arrays) or "none"
        raise InputError(f"{path} must hold exactly one array; it holds {names}")
    return next(iter(arrays.values()))


def _named(content: Any) -> str:
    if isinstance(content, np.ndarray):
        return f"an array of {content.dtype}"
    return f"a value of type {type(content).__name__}"


def read_floats(path: Path, shape: tuple[int, ...]) -> Tensor:
    """The array of a file of floats; a single input of `shape` becomes a batch of one."""
    values = read_tensor(path)
    if not values.is_floating_point():
        raise InputError(f"{path} holds {values.dtype}: save floats, for images usually x / 255")
    return values[None] if tuple(values.shape) == shape else values


def read_inputs(path: Path, shape: tuple[int, ...]) -> Tensor:
    """Network inputs `(B, *shape)` from a file."""
    inputs = read_floats(path, shape)
    if not inputs.numel():
        raise InputError(f"{path} holds no inputs: save at least one")
    if tuple(inputs.shape[1:]) != shape:
        raise InputError(
            f"{path} has shape {tuple(inputs.shape)}, and the network takes inputs of shape "
            f"{shape}: save one such input or an array (N, {', '.join(map(str, shape))})"
        )
    if not bool(torch.isfinite(inputs).all()):
        raise InputError(f"{path} holds NaN or infinite values")
    return inputs
