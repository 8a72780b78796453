"""Finds the files of a data set and reads them, packed or not."""

from __future__ import annotations

import gzip
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from facetwalk.data.checksums import AGAIN, check_archive, check_content
from facetwalk.messages import reason
from facetwalk.types import InputError

Split = Literal["train", "test"]

_UNREADABLE = (OSError, EOFError, zlib.error, tarfile.TarError)


@contextmanager
def reading() -> Iterator[None]:
    """Names what may not be read within, such as a folder without permission.

    >>> with reading():
    ...     open("/dev/null/data")
    Traceback (most recent call last):
    facetwalk.types.InputError: /dev/null/data cannot be read (Not a directory): pass a folder ...
    """
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{error.filename} cannot be read ({error.strerror}): pass a folder whose files may be "
            "read"
        ) from error


def check_split(data: str, split: str) -> None:
    """Refuse what is neither 'train' nor 'test'."""
    if split not in ("train", "test"):
        raise InputError(f"{data} has the splits 'train' and 'test', not {split!r}")


def existing_folder(folder: str | Path) -> Path:
    """`folder` as a path, if it is there."""
    path = Path(folder)
    if not path.is_dir():
        raise InputError(f"there is no folder {path}: pass the folder that holds the data")
    return path


def find(folder: Path, place: str) -> Path | None:
    """The file of a place such as 'MNIST/raw/t10k-images-idx3-ubyte', perhaps gzipped.

    Its last part may also lie in `folder` itself.
    """
    for plain in (folder / place, folder / Path(place).name):
        for path in (plain, plain.with_name(f"{plain.name}.gz")):
            if path.is_file():
                return path
    return None


def read(path: Path, place: str) -> bytes:
    """The content of a file that was found for `place`, unpacked and checked."""
    try:
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix == ".gz" else content
    except _UNREADABLE as error:
        raise InputError(f"{path} cannot be read ({reason(error)}): {AGAIN}") from error
    check_content(content, place, path)
    return content


def read_archive(path: Path, places: Sequence[str]) -> list[bytes]:
    """The contents of some files of a published tar archive, which is checked."""
    check_archive(path)
    contents: dict[str, bytes] = {}
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                file = archive.extractfile(member) if member.name in places else None
                if file is not None:
                    contents[member.name] = file.read()
    except _UNREADABLE as error:
        raise InputError(f"{path} cannot be read ({reason(error)}): {AGAIN}") from error
    missing = [place for place in places if place not in contents]
    if missing:
        raise InputError(f"there is no {missing[0]} in {path}: {AGAIN}")
    return [contents[place] for place in places]
