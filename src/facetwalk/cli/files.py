"""Reads inputs from files, and writes results to them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from facetwalk import InputError, __version__
from facetwalk.cli.json_values import plain

_TORCH_FILES = (".pt", ".pth")
READABLE = (".npy", ".npz", *_TORCH_FILES)


def read_tensor(path: Path) -> Tensor:
    """The one array of a file."""
    if path.suffix not in READABLE:
        raise InputError(f"{path} must be a file of a known kind: {', '.join(READABLE)}")
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    try:
        if path.suffix in _TORCH_FILES:
            content = torch.load(path, map_location="cpu", weights_only=True)
        else:
            content = np.load(path, allow_pickle=False)
    except Exception as error:
        raise InputError(f"{path} cannot be read as an array ({type(error).__name__})") from error
    if isinstance(content, np.lib.npyio.NpzFile):
        with content:
            if len(content.files) != 1:
                names = ", ".join(content.files) or "none"
                raise InputError(f"{path} must hold exactly one array; it holds {names}")
            content = content[content.files[0]]
    try:
        return torch.as_tensor(content)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{path} holds a {type(content).__name__}, not numbers") from error


def read_floats(path: Path, shape: tuple[int, ...]) -> Tensor:
    """The array of a file of floats; a single input of `shape` becomes a batch of one."""
    values = read_tensor(path)
    if not values.is_floating_point():
        raise InputError(f"{path} holds {values.dtype}: save floats, for images usually x / 255")
    return values[None] if tuple(values.shape) == shape else values


def read_inputs(path: Path, shape: tuple[int, ...]) -> Tensor:
    """Network inputs `(B, *shape)` from a file."""
    inputs = read_floats(path, shape)
    if tuple(inputs.shape[1:]) != shape or not len(inputs):
        raise InputError(
            f"{path} has shape {tuple(inputs.shape)}, and the network takes inputs of shape "
            f"{shape}: save one such input or an array (N, {', '.join(map(str, shape))})"
        )
    if not bool(torch.isfinite(inputs).all()):
        raise InputError(f"{path} holds NaN or infinite values")
    return inputs


def check_writable(*paths: Path | None) -> None:
    """Refuse files that cannot be written, before the work whose results they would hold."""
    for path in filter(None, paths):
        if not path.parent.is_dir():
            raise InputError(f"there is no folder {path.parent} to write {path.name} to")
        if path.is_dir():
            raise InputError(f"{path} is a folder: give the name of a file")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise InputError(f"{path} may not be written: choose another place")


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Write `data` and the versions that made it as JSON; numbers that JSON lacks become null."""
    versions = {"facetwalk": __version__, "torch": torch.__version__}
    path.write_text(json.dumps(plain({**data, "versions": versions}), indent=2) + "\n")
