"""A folder that remembers an evaluation, so that one that was killed goes on where it was."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from facetwalk.robustness.report import Sample
from facetwalk.types import InputError


class Records:
    """`run.json`, what was asked for, and `samples.jsonl`, a line for each image that is done."""

    def __init__(self, folder: Path | str, asked: Mapping[str, Any]) -> None:
        """Raises `InputError` if the folder holds an evaluation that was asked something else."""
        self.folder = Path(folder)
        self._lines = self.folder / "samples.jsonl"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder} cannot be a folder: {error.strerror}") from error
        wanted = json.loads(json.dumps(asked))
        run = self.folder / "run.json"
        if run.exists():
            self._compare(_parsed(run), wanted)
        else:
            temporary = run.with_suffix(".tmp")
            temporary.write_text(json.dumps(wanted, indent=1) + "\n")
            temporary.replace(run)
        self.samples = self._read()

    def _compare(self, known: Any, wanted: Any) -> None:
        names = sorted(known.keys() | wanted.keys()) if isinstance(known, dict) else []
        other = [name for name in names if known.get(name) != wanted.get(name)]
        if other or not isinstance(known, dict):
            words = ", ".join(f"{n} {known.get(n)} and not {wanted.get(n)}" for n in other)
            raise InputError(
                f"{self.folder} holds an evaluation of something else ({words or 'unreadable'}): "
                "choose another folder, or delete it"
            )

    def _read(self) -> dict[int, Sample]:
        """The samples that are done, by number. A last line that was cut off is removed."""
        if not self._lines.exists():
            return {}
        content = self._lines.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            with self._lines.open("r+b") as file:
                file.truncate(len(whole))
        samples = {}
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                sample = Sample(**json.loads(line))
            except (ValueError, TypeError) as error:
                raise InputError(
                    f"line {number} of {self._lines} is no record of a sample: choose another "
                    "folder, or delete the line"
                ) from error
            samples[sample.index] = sample
        return samples

    def add(self, samples: Sequence[Sample]) -> None:
        """Remember samples; on return they are on the disk."""
        with self._lines.open("ab") as file:
            for sample in samples:
                file.write(json.dumps(asdict(sample)).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self.samples |= {sample.index: sample for sample in samples}


def _parsed(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (ValueError, OSError) as error:
        raise InputError(f"{path} cannot be read: choose another folder, or delete it") from error
