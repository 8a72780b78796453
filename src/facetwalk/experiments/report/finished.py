"""What became of an experiment."""

from __future__ import annotations

from dataclasses import dataclass

from facetwalk.experiments.experiment import Experiment
from facetwalk.experiments.reproducing import Outcome


@dataclass(frozen=True)
class Finished:
    """An experiment that has run, or why it has not."""

    experiment: Experiment
    outcome: Outcome | None = None
    left_out: str = "it has no records here"
    """Why there is no outcome, unless it failed."""
    failed: str | None = None

    @property
    def state(self) -> str:
        if self.outcome is None:
            return "failed" if self.failed else "left out"
        count = len(self.outcome.records)
        return f"{count} record{'s' * (count != 1)}"
