"""Data sets by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from facetwalk.data.cifar_files import CIFAR10_CLASSES, cifar10
from facetwalk.data.files import Split
from facetwalk.data.image_files import ImageFiles
from facetwalk.data.imagenet_files import read_imagenet_val
from facetwalk.data.mnist_files import FASHION_CLASSES, MNIST_CLASSES, fashion_mnist, mnist
from facetwalk.types import InputError


@dataclass(frozen=True, eq=False)
class Dataset:
    """Labelled images.

    >>> import torch
    >>> data = Dataset("blank", torch.zeros(2, 1, 4, 4), torch.tensor([0, 1]), ("cat", "dog"))
    >>> len(data), data.classes[data.labels[1]]
    (2, 'dog')
    """

    name: str
    images: Tensor | ImageFiles
    """`(N, C, H, W)` in [0, 1]. `images[rows]` is a tensor, whether they are in memory or not."""
    labels: Tensor
    """`(N,)`: for each image the number of its class."""
    classes: tuple[str, ...]
    """What the classes are called."""

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class _InMemory:
    read: Callable[[str | Path, Split], tuple[Tensor, Tensor]]
    classes: tuple[str, ...]


_IN_MEMORY = {
    "mnist": _InMemory(mnist, MNIST_CLASSES),
    "fashion-mnist": _InMemory(fashion_mnist, FASHION_CLASSES),
    "cifar10": _InMemory(cifar10, CIFAR10_CLASSES),
}
_IMAGENET = "imagenet"

NAMES = (*_IN_MEMORY, _IMAGENET)
"""What `load` knows."""


def load(name: str, folder: str | Path, split: str) -> Dataset:
    """The data set of that name, from its files in `folder`.

    `split` is 'train' or 'test', and 'val' for ImageNet. Nothing is downloaded.
    """
    check_name(name)
    if name == _IMAGENET:
        if split != "val":
            raise InputError(f"ImageNet is read from the split 'val', not {split!r}")
        return Dataset(name, *read_imagenet_val(folder))
    known = _IN_MEMORY[name]
    images, labels = known.read(folder, split)  # pyright: ignore[reportArgumentType]
    return Dataset(name, images, labels, known.classes)


def check_name(name: str) -> None:
    """Refuse what is no data set.

    >>> check_name("minst")
    Traceback (most recent call last):
    facetwalk.types.InputError: there is no data set 'minst': ...
    """
    if name not in NAMES:
        raise InputError(f"there is no data set {name!r}: choose one of {', '.join(NAMES)}")
