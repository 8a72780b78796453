"""Shows how far long work has come: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Report = Callable[[float, str], None]
"""`(share of the work done, what to say)`."""

_SECONDS_BETWEEN_LINES = 5.0


@contextmanager
def progress_report(enabled: bool, title: str) -> Iterator[Report]:
    """A function to report progress with; it does nothing unless `enabled`.

    Everything goes to standard error, so that results on standard output stay clean.
    """
    if not enabled:
        yield lambda share, text: None
    elif sys.stderr.isatty() and _has_rich():
        with _bar(title) as report:
            yield report
    else:
        yield _lines(title)


def _has_rich() -> bool:
    try:
        import rich.progress  # noqa: F401
    except ImportError:
        return False
    return True


@contextmanager
def _bar(title: str) -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TextColumn("{task.fields[text]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task(title, total=1.0, text="")
        yield lambda share, text: progress.update(bar, completed=share, text=text)


def _lines(title: str) -> Report:
    last = time.monotonic()

    def report(share: float, text: str) -> None:
        nonlocal last
        if time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            sys.stderr.write(f"{title}: {share:.0%} {text}\n")

    return report
