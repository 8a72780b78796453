"""A file that remembers a training, so that one that was killed goes on where it was."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from facetwalk.types import InputError
from facetwalk.writing import write_whole

ANEW = "add --restart to begin anew, or choose another folder"
"""What to do about files of another training."""


class Checkpoint:
    """The file of one training; `asked` is what it was asked for, in plain values.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     checkpoint = Checkpoint(Path(folder) / "net.checkpoint", {"epochs": 3})
    ...     checkpoint.save({"weights": torch.ones(2)})
    ...     checkpoint.load()
    {'weights': tensor([1., 1.])}
    """

    def __init__(self, path: Path | str, asked: Mapping[str, Any]) -> None:
        self.path, self._asked = Path(path), dict(asked)

    def save(self, state: Mapping[str, Any]) -> None:
        """Remember this state in place of the last; a kill leaves the one or the other."""
        content = io.BytesIO()
        torch.save({"asked": self._asked, "state": dict(state)}, content)
        write_whole(self.path, content.getbuffer())

    def load(self) -> dict[str, Any] | None:
        """The last state, on the CPU; None without a file, `InputError` for another training's."""
        if not self.path.exists():
            return None
        try:
            content = torch.load(self.path, map_location="cpu", weights_only=True)
            asked, state = dict(content["asked"]), dict(content["state"])
        except Exception as error:
            raise InputError(f"{self.path} cannot be read as a checkpoint: {ANEW}") from error
        check_same(self.path, asked, self._asked)
        return state

    def remove(self) -> None:
        """Forget it."""
        self.path.unlink(missing_ok=True)


def check_same(path: Path, known: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Refuse a file that belongs to a training which was asked something else.

    >>> check_same(Path("net.json"), {"epochs": 3, "seed": 0}, {"epochs": 4, "seed": 0})
    Traceback (most recent call last):
    facetwalk.types.InputError: net.json is of another training (epochs 3 and not 4): add ...
    """
    names = sorted(known.keys() | wanted.keys())
    other = [name for name in names if known.get(name) != wanted.get(name)]
    if other:
        words = ", ".join(f"{name} {known.get(name)} and not {wanted.get(name)}" for name in other)
        raise InputError(f"{path} is of another training ({words}): {ANEW}")
