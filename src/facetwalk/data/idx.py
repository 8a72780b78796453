"""The format of MNIST: a magic number, sizes as big-endian integers, values as bytes."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import numpy as np

from facetwalk.data.checksums import AGAIN
from facetwalk.types import InputError


def parse_idx(content: bytes, dimensions: int, source: str | Path) -> np.ndarray:
    """The bytes of an idx file as an array with so many dimensions; `source` is for messages.

    >>> parse_idx(bytes([0, 0, 8, 1, 0, 0, 0, 2, 5, 7]), 1, "labels")
    array([5, 7], dtype=uint8)
    """
    magic = bytes([0, 0, 8, dimensions])
    if content[:4] != magic:
        raise InputError(
            f"{source} starts with {content[:4].hex() or 'nothing'}, not with {magic.hex()} as an "
            f"idx file of bytes in {dimensions} dimension(s) does: {AGAIN}"
        )
    start = 4 + 4 * dimensions
    if len(content) < start:
        raise InputError(
            f"{source} has {len(content)} bytes and ends within its header of {start}: {AGAIN}"
        )
    sizes = struct.unpack_from(f">{dimensions}I", content, offset=4)
    expected = start + math.prod(sizes)
    if len(content) != expected or expected == start:
        raise InputError(
            f"{source} has {len(content)} bytes, but its header announces "
            f"{' x '.join(map(str, sizes))} values and {expected} bytes: {AGAIN}"
        )
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(sizes)
