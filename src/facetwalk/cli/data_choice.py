"""Loads the images that a command works on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from torch import Tensor

from facetwalk import InputError
from facetwalk.cli.files import read_inputs, read_tensor
from facetwalk.data import NAMES, load
from facetwalk.robustness.inputs import Images
from facetwalk.zoo import Loaded, digits

_SHIPPED = "digits"
"""The data that need no folder."""


@dataclass(frozen=True)
class DataOptions:
    """What a user said about the data; None is what they left open."""

    data: str | None = None
    folder: Path | None = None
    images: Path | None = None
    labels: Path | None = None
    first: int = 0
    samples: int | None = None


@dataclass(frozen=True)
class Chosen:
    """Images and labels, and where they come from."""

    images: Images
    labels: Tensor
    name: str
    classes: tuple[str, ...] | None = None
    """What the classes are called, where that is known."""


class _Part:
    """Some of the images, read when they are asked for."""

    def __init__(self, images: Images, first: int, count: int) -> None:
        self.images, self.first, self.count = images, first, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, part: slice) -> Tensor:
        start, stop, _ = part.indices(self.count)
        return self.images[self.first + start : self.first + stop]


def make_data(options: DataOptions, loaded: Loaded) -> Chosen:
    """The images to attack: of a known data set, or of files."""
    if (options.data is None) == (options.images is None):
        raise InputError("say what to attack: either --data NAME or --images FILE --labels FILE")
    whole = _from_files(options, loaded) if options.images else _known(options)
    left = len(whole.images) - options.first
    if left < 1:
        raise InputError(f"there are {len(whole.images)} images, and --first is {options.first}")
    count = min(left, options.samples or left)
    last = options.first + count - 1
    return replace(
        whole,
        images=_Part(whole.images, options.first, count),
        labels=whole.labels[options.first : last + 1],
        name=f"{whole.name}, {options.first} to {last}",
    )


def _from_files(options: DataOptions, loaded: Loaded) -> Chosen:
    if options.images is None or options.labels is None:
        raise InputError("--images needs the true classes too: add --labels FILE")
    images = read_inputs(options.images, loaded.input_shape)
    labels = read_tensor(options.labels)
    if len(labels) != len(images):
        raise InputError(
            f"{options.images} holds {len(images)} images and {options.labels} {len(labels)} labels"
        )
    return Chosen(images, labels, str(options.images))


def _known(options: DataOptions) -> Chosen:
    assert options.data is not None
    if options.data == _SHIPPED:
        return Chosen(*digits("test"), "digits, test")
    if options.data not in NAMES:
        raise InputError(
            f"there is no data set {options.data!r}: choose one of {', '.join((_SHIPPED, *NAMES))}"
        )
    if options.folder is None:
        raise InputError(f"--data {options.data} needs the folder that holds it: add --folder")
    split = "val" if options.data == "imagenet" else "test"
    found = load(options.data, options.folder, split)
    return Chosen(found.images, found.labels, f"{found.name}, {split}", found.classes)
