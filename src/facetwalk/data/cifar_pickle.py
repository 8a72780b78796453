"""Reads the pickles of CIFAR-10 without running anything that a pickle may ask for.

The published batches were written by Python 2 and name three things: `_reconstruct`, `ndarray`
and `dtype` of NumPy. A record that only keeps what it is given stands for each of them.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from pathlib import Path
from typing import Any

import numpy as np

from facetwalk.data.checksums import AGAIN
from facetwalk.messages import reason
from facetwalk.types import InputError

_KNOWN = {("numpy.core.multiarray", "_reconstruct"), ("numpy", "ndarray"), ("numpy", "dtype")}
_PIXELS = 3072
_BYTES = b"u1"


def parse_pickle(content: bytes, source: str | Path) -> tuple[np.ndarray, np.ndarray]:
    """Pixels `(N, 3072)` and labels `(N,)` of a batch of the Python version."""
    try:
        return _arrays(_unpickle(content))
    # Broken pickles raise errors of every kind.
    except Exception as error:
        raise InputError(
            f"{source} cannot be read as a batch of CIFAR-10 ({reason(error)}): {AGAIN}"
        ) from error


def _require_small_memo(content: bytes) -> None:
    """A pickle numbers what it reads, and its reader has room for the largest number: in a broken
    one that may be more than the memory holds."""
    for opcode, argument, _ in pickletools.genops(content):
        is_number = opcode.name in ("PUT", "BINPUT", "LONG_BINPUT")
        if is_number and int(argument or 0) > len(content):
            raise pickle.UnpicklingError(
                f"it numbers something {argument}, in {len(content)} bytes"
            )


def _unpickle(content: bytes) -> Any:
    _require_small_memo(content)

    # Defined here, so that what a pickle does to the class ends with the call.
    class Record:
        def __init__(self, *arguments: Any) -> None:
            self.arguments = arguments

        def __setstate__(self, state: Any) -> None:
            self.state = state

    class Unpickler(pickle.Unpickler):
        def find_class(self, module_name: str, global_name: str) -> type:
            if (module_name, global_name) not in _KNOWN:
                raise pickle.UnpicklingError(f"{module_name}.{global_name} does not belong there")
            return Record

    return Unpickler(io.BytesIO(content), encoding="bytes").load()


def _arrays(batch: Any) -> tuple[np.ndarray, np.ndarray]:
    _, shape, kind, fortran, raw = batch[b"data"].state
    labels = np.array(batch[b"labels"], dtype=np.int64)
    if kind.arguments[0] != _BYTES or len(shape) != 2 or shape[1] != _PIXELS:
        raise ValueError(f"its data has the shape {shape}, not (N, {_PIXELS}) in bytes")
    if labels.shape != shape[:1] or not len(labels):
        raise ValueError(f"it holds {shape[0]} images and labels of shape {labels.shape}")
    pixels = np.frombuffer(raw, dtype=np.uint8)
    return pixels.reshape(shape, order="F" if fortran else "C"), labels
