"""What the commands print: tables and plain lines that terminals and pipes both show well."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import wrap

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text


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

    A cell that does not fit goes on in the next line; nothing is cut off.
    """
    table = Table(box=box.SIMPLE, show_edge=False, pad_edge=False)
    for name in columns:
        justify = "left" if name in words else "right"
        table.add_column(Text(name), justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    if total is not None:
        table.add_section()
        table.add_row(*map(Text, total))
    console = Console(highlight=False)
    console.print()
    console.print(table)
    console.print()
