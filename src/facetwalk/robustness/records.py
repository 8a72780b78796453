"""A folder that remembers an evaluation, so that one that was killed goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_type_hints

from facetwalk.robustness.report import Sample
from facetwalk.run_folder import RunFolder
from facetwalk.types import InputError

_OF_OLDER = "first image"
"""What older versions wrote into `run.json`, and this one does not."""


class Records:
    """`run.json`, what was asked for, and `samples.jsonl`, a line for each image that is done."""

    def __init__(self, folder: Path | str, asked: Mapping[str, Any]) -> None:
        """Raises `InputError` if the folder holds an evaluation that was asked something else, or
        by an older version."""
        _refuse_older(Path(folder))
        self._kept = RunFolder(
            folder,
            asked,
            "samples.jsonl",
            _sample,
            run="an evaluation",
            part="a sample",
        )

    @property
    def samples(self) -> dict[int, Sample]:
        """The samples that are done, by number."""
        return {sample.index: sample for sample in self._kept.lines}

    def add(self, samples: Sequence[Sample]) -> None:
        """Remember samples; on return they are on the disk."""
        self._kept.add(asdict(sample) for sample in samples)


def _sample(values: Any) -> Sample:
    sample = Sample(**values)
    for name, kind in get_type_hints(Sample).items():
        value = getattr(sample, name)
        if not isinstance(value, (float, int) if kind is float else kind):
            raise InputError(f"{name} is {value!r}")
    return sample


def _refuse_older(folder: Path) -> None:
    try:
        known = json.loads((folder / "run.json").read_text())
    except (OSError, ValueError):  # is there a folder, and can it be read? RunFolder says so
        return
    if isinstance(known, dict) and _OF_OLDER in known:
        raise InputError(
            f"{folder} holds an evaluation of an older facetwalk, which cannot tell whether images "
            "and model are still the same: choose another folder, or delete it"
        )
