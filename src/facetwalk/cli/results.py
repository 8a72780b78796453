"""Files that commands write: refused before the work, or written whole after it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch

from facetwalk import InputError, __version__
from facetwalk.cli.json_values import plain
from facetwalk.writing import is_device, write_whole


@dataclass(frozen=True)
class Output:
    """A file that an option asks for; a path of None asks for none."""

    option: str
    path: Path | None
    suffix: str | None = None
    """How its name must end."""


def check_outputs(outputs: Iterable[Output], reads: Iterable[str | Path | None] = ()) -> None:
    """Refuse files that cannot be written, or that would take the place of others, before the work
    whose results they would hold.

    `reads` are the files that the command reads, and texts that may name some: `net.py:function`.
    """
    taken: dict[str, str | None] = {
        place: None for text in filter(None, reads) for place in _places(text)
    }
    for output in outputs:
        if output.path is None:
            continue
        _check_writable(output, output.path)
        place = os.path.realpath(output.path)
        if place in taken:
            raise InputError(_taken(output, taken[place]))
        taken[place] = output.option


def _places(text: str | Path) -> list[str]:
    """The paths that a text may name."""
    return [os.path.realpath(part) for part in (str(text), *str(text).split(":"))]


def _taken(output: Output, other: str | None) -> str:
    if other is None:
        return (
            f"{output.option} {output.path} would replace a file that this command reads: "
            "choose another name"
        )
    return f"{other} and {output.option} both name {output.path}: give each a file of its own"


def _check_writable(output: Output, path: Path) -> None:
    place = Path(os.path.realpath(path))
    if not place.parent.is_dir():
        raise InputError(f"there is no folder {path.parent} to write {path.name} to")
    if path.is_dir():
        raise InputError(f"{path} is a folder: give the name of a file")
    if is_device(path):
        return
    if output.suffix is not None and path.suffix.lower() != output.suffix:
        raise InputError(f"{output.option} {path} must end with {output.suffix}")
    if not os.access(place.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise InputError(f"{path} may not be written: choose another place")


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write `data` and the versions that made it as JSON; numbers that JSON lacks become null."""
    versions = {"facetwalk": __version__, "torch": torch.__version__}
    text = json.dumps(plain({**data, "versions": versions}), indent=2)
    write_whole(path, f"{text}\n".encode())


def write_array(path: Path, array: np.ndarray) -> None:
    """Write an `.npy` file."""
    content = BytesIO()
    np.save(content, array)
    write_whole(path, content.getbuffer())


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write an `.npz` file."""
    content = BytesIO()
    np.savez_compressed(content, **dict(arrays))  # pyright: ignore[reportArgumentType]
    write_whole(path, content.getbuffer())
