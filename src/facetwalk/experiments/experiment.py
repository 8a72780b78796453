"""What an experiment of the paper is: cells to measure, and what their records say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from facetwalk.experiments.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Record = Mapping[str, Any]
"""A line of `records.jsonl`."""


@dataclass(frozen=True)
class Cell:
    """One measurement."""

    about: Mapping[str, str | int | bool]
    """What tells it from all other cells; part of its record."""
    made_from: str
    """A digest of what it works on; a folder with records of something else is refused."""
    measure: Callable[[], Record]

    @property
    def words(self) -> str:
        """What it is, in one line."""
        return ", ".join(f"{name} {value}" for name, value in self.about.items())

    def is_in(self, record: Record) -> bool:
        """Whether a record is that of this cell.

        >>> cell = Cell({"seed": 0}, "", dict)
        >>> cell.is_in({"seed": 0, "value": 1.0}), cell.is_in({"seed": 1, "value": 1.0})
        (True, False)
        """
        return all(record.get(name) == value for name, value in self.about.items())


@dataclass(frozen=True)
class Plan:
    """What there is to measure."""

    settings: Mapping[str, Any]
    """What all records of a folder must share."""
    cells: Sequence[Cell]
    left_out: Sequence[str] = ()
    """A sentence for each thing that is missing."""


@dataclass(frozen=True)
class Experiment:
    """What is made of records; every function takes all of them."""

    name: str
    title: str
    about: Sequence[str]
    """Sentences that a reader of the tables needs."""
    tables: Callable[[Sequence[Record]], list[Table]]
    comment: Callable[[Sequence[Record]], list[str]]
    """Short sentences about what the records show."""
    draw: Callable[[Sequence[Record]], Figure]
