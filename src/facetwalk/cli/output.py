"""What the commands print: tables and plain lines that terminals and pipes both show well."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from textwrap import wrap

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

_GAP = 3
"""Letters between two columns."""


def say(*lines: str) -> None:
    """Print lines as they are: no markup is read, no line is broken."""
    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    for line in lines:
        console.print(line)


def say_wrapped(text: str, indent: int = 0) -> None:
    """Print plain text in lines that fit; words such as names are never broken."""
    space = " " * indent
    width = Console().width
    say(*wrap(text, width, initial_indent=space, subsequent_indent=space, break_on_hyphens=False))


def show_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    total: Sequence[str] | None = None,
    words: Sequence[str] = (),
) -> None:
    """Print a table. Columns named in `words` are text; the others are numbers, to the right.

    A cell that does not fit goes on in the next line, but no word or number is broken: where a
    terminal is too narrow for that, each row is a list of lines `name: value`.
    """
    cells = [[_as_text(cell) for cell in row] for row in rows]
    last = [] if total is None else [[Text(cell) for cell in total]]
    head = [Text(name) for name in columns]
    console = Console(highlight=False)
    widths = _widths([head, *cells, *last], console.width - _GAP * (len(head) - 1))
    console.print()
    if widths is None:
        _print_lists(columns, [*cells, *last])
    else:
        console.print(_table(head, cells, last, widths, words))
        console.print()


def _as_text(cell: str | Text) -> Text:
    return Text(cell) if isinstance(cell, str) else cell


def _widths(lines: Sequence[Sequence[Text]], room: int) -> list[int] | None:
    """A width for each column, all together at most `room`; None where words would be broken."""
    of_columns = list(zip(*lines, strict=True))
    widths = [max(cell.cell_len for cell in column) for column in of_columns]
    least = [max(map(_longest_word, column)) for column in of_columns]
    while sum(widths) > room:
        slack = [width - enough for width, enough in zip(widths, least, strict=True)]
        if not any(slack):
            return None
        widths[slack.index(max(slack))] -= 1
    return widths


def _longest_word(cell: Text) -> int:
    return max((Text(word).cell_len for word in cell.plain.split()), default=0)


def _table(
    head: Sequence[Text],
    cells: Sequence[Sequence[Text]],
    last: Sequence[Sequence[Text]],
    widths: Sequence[int],
    words: Sequence[str],
) -> Table:
    table = Table(box=box.SIMPLE, show_edge=False, pad_edge=False)
    for name, width in zip(head, widths, strict=True):
        table.add_column(name, justify="left" if name.plain in words else "right", width=width)
    for row in cells:
        table.add_row(*row)
    for row in last:
        table.add_section()
        table.add_row(*row)
    return table


def _print_lists(columns: Sequence[str], rows: Sequence[Sequence[Text]]) -> None:
    for row in rows:
        for name, cell in zip(columns, row, strict=True):
            if cell.plain:
                say_wrapped(f"{name}: {cell.plain}" if name else cell.plain)
        say("")


def drop_what_cannot_be_printed() -> None:
    """Otherwise Python tries once more at its end, and complains."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
