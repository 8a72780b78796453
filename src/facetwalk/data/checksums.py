"""The MD5 sums under which the data sets are published."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path

from facetwalk.types import InputError

AGAIN = "delete it and download it again"

_new_md5 = partial(hashlib.md5, usedforsecurity=False)

ARCHIVES = {
    "MNIST/raw/train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "MNIST/raw/train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
    "MNIST/raw/t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
    "MNIST/raw/t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
    "FashionMNIST/raw/train-images-idx3-ubyte.gz": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
    "FashionMNIST/raw/train-labels-idx1-ubyte.gz": "25c81989df183df01b3e8a0aad5dffbe",
    "FashionMNIST/raw/t10k-images-idx3-ubyte.gz": "bef4ecab320f06d8554ea6380940ec79",
    "FashionMNIST/raw/t10k-labels-idx1-ubyte.gz": "bb300cfdad3c16e7a12a480ee83cd310",
    "cifar-10-binary.tar.gz": "c32a1d4ab5d03f1284b67883e8d87530",
    "cifar-10-python.tar.gz": "c58f30108f718f92721af3b95e74349a",
}
"""Sums of what is downloaded, by its place in a data folder."""

CONTENTS = {
    "MNIST/raw/train-images-idx3-ubyte": (47040016, "6bbc9ace898e44ae57da46a324031adb"),
    "MNIST/raw/train-labels-idx1-ubyte": (60008, "a25bea736e30d166cdddb491f175f624"),
    "MNIST/raw/t10k-images-idx3-ubyte": (7840016, "2646ac647ad5339dbf082846283269ea"),
    "MNIST/raw/t10k-labels-idx1-ubyte": (10008, "27ae3e4e09519cfbb04c329615203637"),
    "FashionMNIST/raw/train-images-idx3-ubyte": (47040016, "f4a8712d7a061bf5bd6d2ca38dc4d50a"),
    "FashionMNIST/raw/train-labels-idx1-ubyte": (60008, "9018921c3c673c538a1fc5bad174d6f9"),
    "FashionMNIST/raw/t10k-images-idx3-ubyte": (7840016, "8181f5470baa50b63fa0f6fddb340f0a"),
    "FashionMNIST/raw/t10k-labels-idx1-ubyte": (10008, "15d484375f8d13e6eb1aabb0c3f46965"),
    "cifar-10-batches-bin/data_batch_1.bin": (30730000, "5dd7e06a14cb22eb9f671a540d1b7c25"),
    "cifar-10-batches-bin/data_batch_2.bin": (30730000, "5ea93a67294ea407fff1d09f752e9692"),
    "cifar-10-batches-bin/data_batch_3.bin": (30730000, "942cd6a4bcdd0dd3c604fbe906cb4421"),
    "cifar-10-batches-bin/data_batch_4.bin": (30730000, "ae636b3ba5c66a11e91e8cb52e771fcb"),
    "cifar-10-batches-bin/data_batch_5.bin": (30730000, "53f37980c15c3d472c316c40844f3f0d"),
    "cifar-10-batches-bin/test_batch.bin": (30730000, "803d5f7f4d78ea53de84dbe85f74fb6d"),
    "cifar-10-batches-py/data_batch_1": (31035704, "c99cafc152244af753f735de768cd75f"),
    "cifar-10-batches-py/data_batch_2": (31035320, "d4bba439e000b95fd0a9bffe97cbabec"),
    "cifar-10-batches-py/data_batch_3": (31035999, "54ebc095f3ab1f0389bbae665268c751"),
    "cifar-10-batches-py/data_batch_4": (31035696, "634d18415352ddfa80567beed471001a"),
    "cifar-10-batches-py/data_batch_5": (31035623, "482c414d41f54cd18b22e5b47cb7c3cb"),
    "cifar-10-batches-py/test_batch": (31035526, "40351d587109b95175f43aff81a1287e"),
}
"""Sizes and sums of what is in them. A file compressed anew has the same content."""


def md5_of(content: bytes) -> str:
    """The sum of what is in memory."""
    return _new_md5(content).hexdigest()


def md5_of_file(path: Path) -> str:
    """The sum of a file, read piece by piece."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, _new_md5).hexdigest()


def check_archive(path: Path) -> None:
    """Refuse an archive that has a published name and another sum."""
    found, published = md5_of_file(path), ARCHIVES[path.name]
    if found != published:
        raise InputError(
            f"{path} has the MD5 sum {found}, not {published} as published: {AGAIN}, or unpack "
            "it if this is what you want to read"
        )


def check_content(content: bytes, place: str, source: str | Path) -> None:
    """Refuse content as long as the published one at `place`, but different from it.

    Content of another length is somebody's selection of the data, and is let through.
    """
    size, published = CONTENTS[place]
    if len(content) == size and (found := md5_of(content)) != published:
        raise InputError(
            f"{source} is not the published {place} (its content has the MD5 sum {found}, not "
            f"{published}): {AGAIN}"
        )
