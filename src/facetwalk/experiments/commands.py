"""The commands that made the records of a folder, so that numbers can name them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from facetwalk.writing import make_folder, write_whole

_FILE = "commands.txt"


def command_of(name: str, request: Any, out: Path) -> str:
    """What to type for a request, a dataclass whose fields are options of `facetwalk reproduce`.

    Fields with several values are options that are repeated: `seeds` is one number, `envs` are
    environments.

    >>> from facetwalk.experiments.rl import Request
    >>> command_of("rl", Request(envs=["Ant-v5", "Hopper-v5"], seeds=5), Path("my run"))
    "facetwalk reproduce rl --env Ant-v5 --env Hopper-v5 --seeds 5 --out 'my run'"
    """
    options = [word for field in fields(request) for word in _options(field, request)]
    return shlex.join(["facetwalk", "reproduce", name, *options, "--out", str(out)])


def _options(field: Any, request: Any) -> Iterator[str]:
    value = getattr(request, field.name)
    if isinstance(value, list | tuple):
        if tuple(value) != field.default:
            for each in value:
                yield from (f"--{field.name.removesuffix('s')}", str(each))
    elif value is True:
        yield f"--{field.name}"
    elif value != field.default:
        yield from (f"--{field.name}", str(value))


def remember_command(folder: Path, command: str) -> None:
    """Add it to those of a folder, unless it is one of them.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     for command in ("one", "other", "one"):
    ...         remember_command(Path(folder), command)
    ...     commands_of(Path(folder))
    ['one', 'other']
    """
    known = commands_of(folder)
    if command not in known:
        make_folder(folder)
        write_whole(folder / _FILE, "".join(f"{each}\n" for each in [*known, command]).encode())


def commands_of(folder: Path) -> list[str]:
    """Those that are remembered, first ones first."""
    path = folder / _FILE
    return path.read_text().splitlines() if path.exists() else []
