"""The validation images of ImageNet: a folder for each class, or one folder and a list of labels.

The number of a class is its place among the sorted names of all 1000.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from pathlib import Path

import numpy as np
from torch import Tensor

from facetwalk.data.files import existing_folder, reading
from facetwalk.data.image_files import ImageFiles
from facetwalk.data.tensors import to_labels
from facetwalk.messages import reason
from facetwalk.types import InputError

CLASSES = 1000

_CLASS_NAME = re.compile(r"n\d{8}")
_CLASS_LISTS = ("classes.txt", "LOC_synset_mapping.txt", "synset_words.txt")
_LABEL_LISTS = ("val.txt", "labels.txt", "imagenet_2012_validation_synset_labels.txt")
_OTHER_ORDER = "ILSVRC2012_validation_ground_truth.txt"


def imagenet_val(
    folder: str | Path, labels: str | Path | None = None, classes: str | Path | None = None
) -> tuple[ImageFiles, Tensor]:
    """Images `(N, 3, 224, 224)` in [0, 1], read when they are asked for, and labels `(N,)`.

    Args:
        folder: where the images are, or the folder around `val`. They lie in folders named like
            `n01440764`, or all together with a list of labels.
        labels: the list of labels of images that lie together, a line for each: the name of the
            file and its label, or the label alone, in the order of the sorted names. A label is
            a number from 0 to 999 or a name like `n01440764`. Without it, `val.txt`,
            `labels.txt` or `imagenet_2012_validation_synset_labels.txt` in `folder`.
        classes: the list of all classes in order, a line for each that begins with its name.
            Without it, `classes.txt`, `LOC_synset_mapping.txt` or `synset_words.txt` in `folder`.
            Only needed where `folder` does not have all 1000 classes.
    """
    images, numbers, _ = read_imagenet_val(folder, labels, classes)
    return images, numbers


@reading()
def read_imagenet_val(
    folder: str | Path, labels: str | Path | None = None, classes: str | Path | None = None
) -> tuple[ImageFiles, Tensor, tuple[str, ...]]:
    """As `imagenet_val`, and the names of the classes."""
    root = existing_folder(folder)
    place = root / "val" if (root / "val").is_dir() else root
    folders = sorted(
        path for path in place.iterdir() if _CLASS_NAME.fullmatch(path.name) and path.is_dir()
    )
    paths = [path for image_folder in folders or [place] for path in _images_in(image_folder)]
    if not paths:
        raise InputError(
            f"there are no JPEG images in {place} or in folders named like n01440764 within it: "
            "pass the folder that holds the validation images of ImageNet"
        )
    if folders:
        source, found = place, [path.parent.name for path in paths]
        named = {path.name for path in folders}
    else:
        source = _label_list(place, root, labels)
        found = _labels_of(paths, source)
        named = {label for label in found if not label.isdecimal()}
    names = _class_names(named, _listing(root, classes, _CLASS_LISTS), source)
    number_of = {name: number for number, name in enumerate(names)}
    numbers = [number_of[label] if label in number_of else int(label) for label in found]
    return ImageFiles(tuple(paths)), to_labels(np.array(numbers), CLASSES, source), names


def _images_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in (".jpeg", ".jpg"))


def _label_list(place: Path, root: Path, given: str | Path | None) -> Path:
    """The list of the labels of images that lie together."""
    listing = _listing(root, given, _LABEL_LISTS)
    if listing is None:
        raise InputError(
            f"{place} holds images but no folders named like n01440764, and no list of their "
            f"labels is in {root}: pass labels=, a file with a line 'name label' for each image"
        )
    return listing


def _listing(root: Path, given: str | Path | None, names: Sequence[str]) -> Path | None:
    """The list that was given, or the first of `names` that is in the folder."""
    if given is not None:
        return Path(given)
    return next((root / name for name in names if (root / name).is_file()), None)


def _lines_of(path: Path) -> list[list[str]]:
    """The words of each line that has any."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the list {path} cannot be read ({reason(error)})") from error
    return [words for line in lines if (words := line.split())]


def _labels_of(paths: Sequence[Path], source: Path) -> list[str]:
    """The label of each image, as it is written in the list."""
    if source.name == _OTHER_ORDER:
        raise InputError(
            f"{source} numbers the classes in an order of its own: pass labels=, a list with "
            "names like n01440764, or with numbers in the order of the sorted names"
        )
    lines = _lines_of(source)
    if all(len(words) == 1 for words in lines):
        if len(lines) != len(paths):
            raise InputError(f"{source} holds {len(lines)} labels for {len(paths)} images")
        labels = [label for (label,) in lines]
    else:
        label_of = {words[0]: words[-1] for words in lines}
        missing = [path.name for path in paths if path.name not in label_of]
        if missing:
            raise InputError(f"{source} has no label for {missing[0]}")
        labels = [label_of[path.name] for path in paths]
    for label in labels:
        if not (label.isdecimal() or _CLASS_NAME.fullmatch(label)):
            raise InputError(
                f"{source} holds the label {label!r}, and labels are numbers from 0 to "
                f"{CLASSES - 1} or names like n01440764"
            )
    return labels


def _class_names(named: Set[str], listing: Path | None, source: Path) -> tuple[str, ...]:
    """The names of all classes in order; their numbers, where nothing tells the names."""
    if listing is not None:
        names = tuple(words[0] for words in _lines_of(listing))
        if len(names) != CLASSES or len(set(names)) != CLASSES:
            raise InputError(
                f"{listing} holds {len(names)} classes, {len(set(names))} of them different, and "
                f"must hold {CLASSES}"
            )
        if unknown := sorted(named - set(names)):
            raise InputError(f"the class {unknown[0]} of {source} is not in {listing}")
        return names
    if named and len(named) != CLASSES:
        raise InputError(
            f"{source} has {len(named)} of the {CLASSES} classes of ImageNet, which does not tell "
            "their numbers: pass classes=, a file with the names of all classes in order"
        )
    return tuple(sorted(named)) or tuple(map(str, range(CLASSES)))
