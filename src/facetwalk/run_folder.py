"""A folder that remembers long work, so that work that was killed goes on where it was."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from facetwalk.types import InputError
from facetwalk.writing import make_folder, write_whole

Line = TypeVar("Line")


class RunFolder(Generic[Line]):
    """`run.json`, what was asked for, and a file of lines, one for each part that is done.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     RunFolder(folder, {"seed": 0}, "done.jsonl", dict).add([{"part": 1}])
    ...     RunFolder(folder, {"seed": 0}, "done.jsonl", dict).lines
    [{'part': 1}]
    """

    def __init__(
        self,
        folder: Path | str,
        asked: Mapping[str, Any],
        file: str,
        read: Callable[[Any], Line],
        run: str = "a run",
        part: str = "a part",
    ) -> None:
        """Raises `InputError` if the folder holds a run that was asked something else, or lines
        that no run of ours wrote.

        `read` makes a line of what its JSON holds, or raises `InputError` with the reason why it
        cannot. `run` and `part` are what messages call the whole and one line.
        """
        self.folder = Path(folder)
        self._file, self._parse, self._run, self._part = self.folder / file, read, run, part
        make_folder(self.folder)
        wanted = json.loads(json.dumps(asked))
        known = self.folder / "run.json"
        if known.exists():
            self._compare(_parsed(known), wanted)
        elif self._file.exists():
            raise InputError(
                f"{self.folder} holds {file} but no run.json, so it is not {self._run} to go on "
                "with: choose another folder"
            )
        else:
            write_whole(known, (json.dumps(wanted, indent=1) + "\n").encode())
        self.lines = self._read()

    def _compare(self, known: Any, wanted: Any) -> None:
        names = sorted(known.keys() | wanted.keys()) if isinstance(known, dict) else []
        other = [name for name in names if known.get(name) != wanted.get(name)]
        if other or not isinstance(known, dict):
            words = ", ".join(f"{n} {known.get(n)} and not {wanted.get(n)}" for n in other)
            raise InputError(
                f"{self.folder} holds {self._run} of something else ({words or 'unreadable'}): "
                "choose another folder, or delete it"
            )

    def _read(self) -> list[Line]:
        """What is done. A last line that was cut off is removed, once all others were read."""
        if not self._file.exists():
            return []
        content = self._file.read_bytes()
        end = content.rfind(b"\n") + 1
        whole = enumerate(content[:end].splitlines(), 1)
        lines = [self._line(number, text) for number, text in whole]
        if end < len(content):
            os.truncate(self._file, end)
        return lines

    def _line(self, number: int, text: bytes) -> Line:
        try:
            return self._parse(json.loads(text))
        except (ValueError, TypeError) as error:
            why = f" ({error})" if isinstance(error, InputError) else ""
            raise InputError(
                f"line {number} of {self._file} is no record of {self._part}{why}: choose another "
                "folder, or delete the line"
            ) from error

    def add(self, done: Iterable[Mapping[str, Any]]) -> None:
        """Remember parts; on return they are on the disk. `InputError` if it is full."""
        parts = [dict(part) for part in done]
        content = b"".join(json.dumps(part).encode() + b"\n" for part in parts)
        try:
            with self._file.open("ab") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise InputError(
                f"{self._file} cannot be written ({error.strerror}); what was done before is kept"
            ) from error
        self.lines += map(self._parse, parts)


def _parsed(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (ValueError, OSError) as error:
        raise InputError(f"{path} cannot be read: choose another folder, or delete it") from error
