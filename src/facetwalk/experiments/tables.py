"""Tables of results, for Markdown and for terminals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """Rows of text below a title. Columns named in `words` are text, the others numbers.

    >>> print(Table("Speed", ["method", "steps"], [["A", "12"]], words=["method"]).markdown())
    ### Speed
    <BLANKLINE>
    | method | steps |
    |---|--:|
    | A | 12 |
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: Sequence[str] = ()

    def markdown(self) -> str:
        lines = [
            self.columns,
            *self.rows,
        ]
        head, *body = (f"| {' | '.join(line)} |" for line in lines)
        rule = "".join("|---" if name in self.words else "|--:" for name in self.columns)
        return "\n".join([f"### {self.title}", "", head, f"{rule}|", *body])
