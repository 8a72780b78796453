"""Folders that can be written to, and files that are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from facetwalk.types import InputError


def make_folder(folder: Path) -> None:
    """Make a folder, or refuse one that cannot be written to.

    >>> make_folder(Path("/dev/null/out"))
    Traceback (most recent call last):
    facetwalk.types.InputError: /dev/null/out cannot be a folder: Not a directory
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be a folder: {error.strerror}") from error
    if not os.access(folder, os.W_OK):
        raise InputError(f"{folder} may not be written to: choose another folder")


def write_whole(path: Path, content: bytes | memoryview) -> None:
    """Write a file; a process that is killed, or a full disk, leaves what was there before.

    A link stays one. What is no file, such as `/dev/stdout`, is written to as it is.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_whole(Path(folder) / "a.txt", b"whole")
    ...     [path.name for path in Path(folder).iterdir()]
    ['a.txt']
    """
    try:
        if is_device(path):
            path.write_bytes(content)
        else:
            _replace(Path(os.path.realpath(path)), content)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error


def is_device(path: Path) -> bool:
    """Whether there is something that is neither a file nor a folder: a terminal, a pipe.

    >>> is_device(Path("/dev/null")), is_device(Path("/dev")), is_device(Path("nowhere"))
    (True, False, False)
    """
    return path.exists() and not path.is_file() and not path.is_dir()


def _replace(path: Path, content: bytes | memoryview) -> None:
    temporary = path.with_name(f"{path.name}.tmp")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
