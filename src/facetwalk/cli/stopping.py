"""What Ctrl-C does: one line on standard error, and the exit status that shells know."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

STOPPED = 130


@contextmanager
def goes_on(command: str = "the same command") -> Iterator[None]:
    """Work that is stopped within says that this command goes on with it."""
    try:
        yield
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(f"{command} goes on where it was") from stop


def say_stopped(stop: KeyboardInterrupt) -> int:
    """Say that it is stopped, and how it goes on, if it does; returns the exit status."""
    print("; ".join(["stopped", *map(str, stop.args)]), file=sys.stderr)
    return STOPPED
