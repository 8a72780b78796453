"""The line that changes while a proof is on its way."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from facetwalk.progress import progress_report

Report = Callable[[str], None]
"""What there is to say now."""

_WIDTH = 79
"""Letters of a line, one less than the narrowest usual terminal has."""


@contextmanager
def live_line(enabled: bool, began: float, seconds: float) -> Iterator[Report]:
    """A function to say how a proof comes on, with the time since `began`, on the clock of
    `time.perf_counter`, and the `seconds` it may take; it does nothing unless `enabled`.

    On a terminal one line is written over; there is no bar, which would leave no room for numbers.
    Elsewhere a line is written every few seconds.
    """
    if not (enabled and sys.stderr.isatty()):
        with progress_report(enabled, "proof") as report:
            yield lambda text: report(
                min(1.0, (time.perf_counter() - began) / seconds),
                f"{text}, {clock(time.perf_counter() - began, seconds)}",
            )
        return
    try:
        yield lambda text: _write_over(text, clock(time.perf_counter() - began, seconds))
    finally:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


def _write_over(text: str, clock: str) -> None:
    sys.stderr.write(f"\r\x1b[K{fitted(text, clock)}")
    sys.stderr.flush()


def fitted(text: str, clock: str) -> str:
    """Both in one line of a terminal: where they are too long, the text is cut, and not the time.

    >>> fitted("best 1.5, bound 2.5", "3/60 s")
    'best 1.5, bound 2.5, 3/60 s'
    """
    room = _WIDTH - len(f", {clock}")
    return f"{text if len(text) <= room else text[: room - 1] + '…'}, {clock}"


def clock(gone: float, seconds: float) -> str:
    """The seconds gone, and those there are.

    >>> clock(12.3, 60), clock(12.3, math.inf)
    ('12/60 s', '12 s')
    """
    return f"{gone:.0f} s" if math.isinf(seconds) else f"{gone:.0f}/{seconds:.0f} s"


def short_count(number: int) -> str:
    """A count in a few letters.

    >>> [short_count(number) for number in (999, 12_345, 55_123_456, 2_000_000_000)]
    ['999', '12.3k', '55.1M', '2.0G']
    """
    if number < 1000:
        return str(number)
    power = min((len(str(number)) - 1) // 3, 3)
    return f"{number / 1000**power:.1f}{' kMG'[power]}"
