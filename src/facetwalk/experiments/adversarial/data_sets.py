"""The data sets of the experiment: images, radii, networks."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from facetwalk.data import ImageFiles, load
from facetwalk.experiments.adversarial import networks
from facetwalk.experiments.adversarial.networks import Network
from facetwalk.robustness.inputs import Images
from facetwalk.types import InputError
from facetwalk.zoo import digits

_CLASS_FIRST = re.compile(r"(\d+)_.*\.(jpg|jpeg)", re.IGNORECASE)
"""Photographs named after the number of their class, as in `007_n01514668.jpg`."""


@dataclass(frozen=True)
class DataSet:
    """Images that may move by `eps` in every pixel, and the networks that see them."""

    name: str
    title: str
    eps: float
    radius: str
    """`eps` as the paper writes it."""
    parameters: str
    """The appendix's column of ADR-GD's parameters."""
    count: int
    """How many images are attacked unless another number is asked for."""
    networks: tuple[Network, ...]
    read: Callable[[Path | None], tuple[Images, Tensor]]

    def images(self, folder: Path | None, count: int | None) -> tuple[Tensor, Tensor]:
        """Images `(N, C, H, W)` in [0, 1] and labels `(N,)`, evenly spaced through the data."""
        images, labels = self.read(folder)
        wanted = min(count or self.count, len(labels))
        rows = (torch.arange(wanted) * len(labels)) // wanted
        chosen = [images[row : row + 1] for row in rows.tolist()]
        return torch.cat(chosen), labels[rows]


def _published(name: str) -> Callable[[Path | None], tuple[Images, Tensor]]:
    def read(folder: Path | None) -> tuple[Images, Tensor]:
        found = load(name, _given(folder), "test")
        return found.images, found.labels

    return read


def _photographs(folder: Path | None) -> tuple[Images, Tensor]:
    """ImageNet's validation images, or a selection whose names begin with their class."""
    root = _given(folder)
    root = root / "imagenet" if (root / "imagenet").is_dir() else root
    place = root / "images" if (root / "images").is_dir() else root
    files = sorted(place.iterdir()) if place.is_dir() else []
    named = [(file, found) for file in files if (found := _CLASS_FIRST.fullmatch(file.name))]
    if named:
        labels = torch.tensor([int(found[1]) for _, found in named])
        return ImageFiles(tuple(file for file, _ in named)), labels
    found = load("imagenet", root, "val")
    return found.images, found.labels


def _given(folder: Path | None) -> Path:
    if folder is None:
        raise InputError("no folder of images is given")
    return folder


DATA_SETS = {
    known.name: known
    for known in (
        DataSet("mnist", "MNIST", 0.2, "0.2", "mnist", 1000, networks.MNIST, _published("mnist")),
        DataSet(
            "cifar10",
            "CIFAR-10",
            8 / 255,
            "8/255",
            "cifar10",
            200,
            networks.CIFAR10,
            _published("cifar10"),
        ),
        DataSet(
            "imagenet",
            "ImageNet",
            2 / 255,
            "2/255",
            "imagenet",
            250,
            networks.IMAGENET,
            _photographs,
        ),
    )
}
"""Those of the paper, by name; radii from its section 6.1."""

STAND_IN = DataSet(
    "digits", "Digits", 0.2, "0.2", "mnist", 20, networks.DIGITS, lambda _: digits("test")
)
"""What comes with the package and with scikit-learn, for a quick look."""
