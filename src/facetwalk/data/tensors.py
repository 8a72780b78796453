"""Bytes to tensors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from facetwalk.data.checksums import AGAIN
from facetwalk.types import InputError


def to_images(pixels: np.ndarray) -> Tensor:
    """Bytes of any shape to numbers in [0, 1].

    >>> to_images(np.array([0, 51, 255], np.uint8))
    tensor([0.0000, 0.2000, 1.0000])
    """
    return torch.from_numpy(pixels.astype(np.float32)).div_(255)


def to_labels(numbers: np.ndarray, classes: int, source: str | Path) -> Tensor:
    """Class numbers `(N,)`, all of them below `classes`; `source` is for messages."""
    if numbers.min() < 0 or numbers.max() >= classes:
        wrong = numbers.min() if numbers.min() < 0 else numbers.max()
        raise InputError(
            f"{source} holds the label {wrong}, and labels are 0 to {classes - 1}: {AGAIN}"
        )
    return torch.from_numpy(numbers.astype(np.int64))
