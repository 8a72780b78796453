"""MNIST and CIFAR-10 from the files that their authors publish."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from facetwalk.types import InputError
from facetwalk.zoo.messages import reason

Split = Literal["train", "test"]

_MNIST_PREFIX = {"train": "train", "test": "t10k"}
_MNIST_SIDE = 28
_CIFAR_FILES = {
    "train": [f"data_batch_{number}.bin" for number in range(1, 6)],
    "test": ["test_batch.bin"],
}
_CIFAR_SHAPE = (3, 32, 32)
_CLASSES = 10
_AGAIN = "download it again"


def mnist(folder: str | Path, split: Split) -> tuple[Tensor, Tensor]:
    """Images `(N, 1, 28, 28)` in [0, 1] and labels `(N,)`.

    The four idx files, gzipped or not, are in `folder` or in its `MNIST/raw`.
    """
    _check_split("MNIST", split)
    prefix = _MNIST_PREFIX[split]
    images_path = _find(Path(folder), "MNIST/raw", f"{prefix}-images-idx3-ubyte")
    labels_path = _find(Path(folder), "MNIST/raw", f"{prefix}-labels-idx1-ubyte")
    images, labels = _idx(images_path, dimensions=3), _idx(labels_path, dimensions=1)
    if images.shape[1:] != (_MNIST_SIDE, _MNIST_SIDE):
        raise InputError(
            f"{images_path} holds images of {images.shape[1]} by {images.shape[2]} pixels, "
            f"not of 28 by 28: pass a folder with the files of MNIST"
        )
    if len(images) != len(labels):
        raise InputError(
            f"{images_path} holds {len(images)} images but {labels_path} holds "
            f"{len(labels)} labels: download both again"
        )
    return _tensors(images[:, None], labels, labels_path)


def cifar10(folder: str | Path, split: Split) -> tuple[Tensor, Tensor]:
    """Images `(N, 3, 32, 32)` in [0, 1] and labels `(N,)`.

    The files of the binary version are in `folder` or in its `cifar-10-batches-bin`.
    """
    _check_split("CIFAR-10", split)
    paths = [_find(Path(folder), "cifar-10-batches-bin", name) for name in _CIFAR_FILES[split]]
    parts = [_cifar_batch(path) for path in paths]
    return torch.cat([images for images, _ in parts]), torch.cat([labels for _, labels in parts])


def _check_split(data: str, split: str) -> None:
    if split not in ("train", "test"):
        raise InputError(f"{data} has the splits 'train' and 'test', not {split!r}")


def _find(folder: Path, inner: str, name: str) -> Path:
    for place in (folder / inner, folder):
        for path in (place / name, place / f"{name}.gz"):
            if path.is_file():
                return path
    raise InputError(
        f"there is no {name} or {name}.gz in {folder / inner} or in {folder}: download it, "
        "and pass the folder that holds it"
    )


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read ({reason(error)}): {_AGAIN}") from error


def _idx(path: Path, dimensions: int) -> np.ndarray:
    """The bytes of an idx file: a magic number, the sizes as big-endian integers, the values."""
    content = _content(path)
    magic = bytes([0, 0, 8, dimensions])
    if content[:4] != magic:
        raise InputError(
            f"{path} starts with {content[:4].hex() or 'nothing'}, not with {magic.hex()} as an "
            f"idx file of bytes in {dimensions} dimension(s) does: {_AGAIN}"
        )
    start = 4 + 4 * dimensions
    sizes = np.frombuffer(content[4:start].ljust(start - 4, b"\0"), dtype=">u4").tolist()
    expected = start + int(np.prod(sizes, dtype=object))
    if len(content) != expected or sizes[0] == 0:
        raise InputError(
            f"{path} has {len(content)} bytes, but its header of {start} bytes "
            f"announces {sizes[0]} item(s) and {expected} bytes: {_AGAIN}"
        )
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(sizes)


def _cifar_batch(path: Path) -> tuple[Tensor, Tensor]:
    content = _content(path)
    size = 1 + int(np.prod(_CIFAR_SHAPE))
    if not content or len(content) % size:
        raise InputError(
            f"{path} has {len(content)} bytes, which is no positive multiple of {size}, the size "
            f"of one CIFAR-10 record: {_AGAIN}"
        )
    records = np.frombuffer(content, dtype=np.uint8).reshape(-1, size)
    return _tensors(records[:, 1:].reshape(-1, *_CIFAR_SHAPE), records[:, 0], path)


def _tensors(images: np.ndarray, labels: np.ndarray, labels_path: Path) -> tuple[Tensor, Tensor]:
    if labels.max() >= _CLASSES:
        raise InputError(
            f"{labels_path} holds the label {labels.max()}, and labels are 0 to 9: {_AGAIN}"
        )
    pixels = torch.from_numpy(images.astype(np.float32)).div_(255)
    return pixels, torch.from_numpy(labels.astype(np.int64))
