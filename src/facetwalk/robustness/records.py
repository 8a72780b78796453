"""A folder that remembers an evaluation, so that one that was killed goes on where it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from facetwalk.robustness.report import Sample
from facetwalk.run_folder import RunFolder


class Records:
    """`run.json`, what was asked for, and `samples.jsonl`, a line for each image that is done."""

    def __init__(self, folder: Path | str, asked: Mapping[str, Any]) -> None:
        """Raises `InputError` if the folder holds an evaluation that was asked something else."""
        self._kept = RunFolder(
            folder,
            asked,
            "samples.jsonl",
            lambda values: Sample(**values),
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
