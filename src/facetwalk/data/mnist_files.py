"""MNIST, and Fashion-MNIST, which comes in the same four files."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from facetwalk.data.files import Split, check_split, existing_folder, find, read, reading
from facetwalk.data.idx import parse_idx
from facetwalk.data.tensors import to_images, to_labels
from facetwalk.types import InputError

MNIST_CLASSES = tuple("0123456789")
FASHION_CLASSES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)

_PREFIX = {"train": "train", "test": "t10k"}
_SIDE = 28


@reading()
def mnist(folder: str | Path, split: Split) -> tuple[Tensor, Tensor]:
    """Images `(N, 1, 28, 28)` in [0, 1] and labels `(N,)`.

    The four idx files, gzipped or not, are in `folder` or in its `MNIST/raw`.
    """
    check_split("MNIST", split)
    return _read(existing_folder(folder), "MNIST/raw", split, "mnist")


@reading()
def fashion_mnist(folder: str | Path, split: Split) -> tuple[Tensor, Tensor]:
    """Images `(N, 1, 28, 28)` in [0, 1] and labels `(N,)`.

    The four idx files, gzipped or not, are in `folder` or in its `FashionMNIST/raw`.
    """
    check_split("Fashion-MNIST", split)
    return _read(existing_folder(folder), "FashionMNIST/raw", split, "fashion-mnist")


def _read(folder: Path, inner: str, split: Split, name: str) -> tuple[Tensor, Tensor]:
    places = [f"{inner}/{_PREFIX[split]}-{kind}-ubyte" for kind in ("images-idx3", "labels-idx1")]
    images_path, labels_path = (_find(folder, place, name) for place in places)
    images = parse_idx(read(images_path, places[0]), 3, images_path)
    labels = parse_idx(read(labels_path, places[1]), 1, labels_path)
    if images.shape[1:] != (_SIDE, _SIDE):
        raise InputError(
            f"{images_path} holds images of {images.shape[1]} by {images.shape[2]} pixels, "
            f"not of 28 by 28: pass a folder with the files of {name}"
        )
    if len(images) != len(labels):
        raise InputError(
            f"{images_path} holds {len(images)} images but {labels_path} holds "
            f"{len(labels)} labels: delete both and download them again"
        )
    return to_images(images[:, None]), to_labels(labels, len(MNIST_CLASSES), labels_path)


def _find(folder: Path, place: str, name: str) -> Path:
    path = find(folder, place)
    if path is None:
        inner, file = place.rsplit("/", 1)
        raise InputError(
            f"there is no {file} or {file}.gz in {folder / inner} or in {folder}: pass the folder "
            f"that holds it, or get it with facetwalk.data.download({name!r}, folder)"
        )
    return path
