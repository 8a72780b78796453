"""CIFAR-10 in its binary and its Python form, unpacked or as the archive of its authors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from facetwalk.data.checksums import AGAIN
from facetwalk.data.cifar_pickle import parse_pickle
from facetwalk.data.files import (
    Split,
    check_split,
    existing_folder,
    find,
    read,
    read_archive,
    reading,
)
from facetwalk.data.tensors import to_images, to_labels
from facetwalk.types import InputError

CIFAR10_CLASSES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)

_SHAPE = (3, 32, 32)
_PIXELS = 3072
_BATCHES = {"train": [f"data_batch_{number}" for number in range(1, 6)], "test": ["test_batch"]}


@reading()
def cifar10(folder: str | Path, split: Split) -> tuple[Tensor, Tensor]:
    """Images `(N, 3, 32, 32)` in [0, 1] and labels `(N,)`.

    `folder` has the files of the binary or the Python version, or one of the folders
    `cifar-10-batches-bin` and `cifar-10-batches-py`, or one of the archives
    `cifar-10-binary.tar.gz` and `cifar-10-python.tar.gz`.
    """
    check_split("CIFAR-10", split)
    parts = [
        (to_images(pixels.reshape(-1, *_SHAPE)), to_labels(labels, len(CIFAR10_CLASSES), source))
        for pixels, labels, source in _batches(existing_folder(folder), split)
    ]
    return torch.cat([images for images, _ in parts]), torch.cat([labels for _, labels in parts])


def parse_records(content: bytes, source: str | Path) -> tuple[np.ndarray, np.ndarray]:
    """Pixels `(N, 3072)` and labels `(N,)` of a binary batch: a byte of label before each image.

    >>> pixels, labels = parse_records(bytes([7] + [255] * 3072), "test_batch.bin")
    >>> pixels.shape, labels
    ((1, 3072), array([7], dtype=uint8))
    """
    size = 1 + _PIXELS
    if not content or len(content) % size:
        raise InputError(
            f"{source} has {len(content)} bytes, which is no positive multiple of {size}, the "
            f"size of one CIFAR-10 record: {AGAIN}"
        )
    records = np.frombuffer(content, dtype=np.uint8).reshape(-1, size)
    return records[:, 1:], records[:, 0]


@dataclass(frozen=True)
class _Form:
    inner: str
    suffix: str
    archive: str
    parse: Callable[[bytes, str | Path], tuple[np.ndarray, np.ndarray]]


_FORMS = (
    _Form("cifar-10-batches-bin", ".bin", "cifar-10-binary.tar.gz", parse_records),
    _Form("cifar-10-batches-py", "", "cifar-10-python.tar.gz", parse_pickle),
)


def _batches(folder: Path, split: Split) -> list[tuple[np.ndarray, np.ndarray, str | Path]]:
    """Pixels, labels and source of every batch of a split, in the first form that is there."""
    for form in _FORMS:
        places = [f"{form.inner}/{batch}{form.suffix}" for batch in _BATCHES[split]]
        paths = [find(folder, place) for place in places]
        if any(paths):
            return [
                (*form.parse(read(path, place), path), path)
                for path, place in zip(_complete(paths, places, folder), places, strict=True)
            ]
    for form in _FORMS:
        archive = folder / form.archive
        if archive.is_file():
            places = [f"{form.inner}/{batch}{form.suffix}" for batch in _BATCHES[split]]
            sources = [f"{place} in {archive}" for place in places]
            contents = read_archive(archive, places)
            return [
                (*form.parse(content, source), source)
                for content, source in zip(contents, sources, strict=True)
            ]
    looked_for = [f"{form.inner}/{_BATCHES[split][0]}{form.suffix}" for form in _FORMS]
    looked_for += [form.archive for form in _FORMS]
    raise InputError(
        f"there is none of {', '.join(looked_for)} in {folder}: pass the folder that holds "
        "CIFAR-10, or get it with facetwalk.data.download('cifar10', folder)"
    )


def _complete(paths: list[Path | None], places: list[str], folder: Path) -> list[Path]:
    missing = [place for place, path in zip(places, paths, strict=True) if path is None]
    if missing:
        raise InputError(
            f"there is no {missing[0]} in {folder}, though other batches are there: unpack the "
            "archive of CIFAR-10 again"
        )
    return [path for path in paths if path is not None]
