"""The line on a terminal: it fits, it is written over, and nothing of it is left."""

import io
import math
import sys
import time

import pytest
import torch

from facetwalk.exact.live_line import clock, fitted, live_line
from facetwalk.exact.proof import Search


class Terminal(io.StringIO):
    def isatty(self):
        return True


def lines_of(value, bound, nodes, gone, seconds):
    """What a search in some state shows on a terminal."""
    began = time.perf_counter() - gone
    with live_line(True, began, seconds) as report:
        Search(
            x=torch.zeros(1),
            value=value,
            bound=bound,
            gap=1e-3,
            threshold=None,
            evaluate=lambda points: points[:, 0],
            began=began,
            deadline=began + seconds,
            report=report,
        ).note(bound, nodes)
    return sys.stderr.getvalue().split("\r\x1b[K")


@pytest.mark.parametrize(
    ("value", "bound", "nodes", "gone", "seconds"),
    [
        (24.843112, 25.123456, 1234, 12, 60),
        (-1.2345678e-6, 1.2345678e6, 55_123_456, 3599, 3600),
        (-1.2345678e10, -1.2345678e9, 999_999_999, 1234, math.inf),
    ],
)
def test_all_of_it_fits_in_80_columns(monkeypatch, value, bound, nodes, gone, seconds):
    monkeypatch.setattr(sys, "stderr", Terminal())
    before, line, after = lines_of(value, bound, nodes, gone, seconds)
    assert (before, after) == ("", "")
    assert len(line) < 80
    assert "…" not in line
    assert line.startswith(f"best {value:.5g}, bound {bound:.5g}, gap ")
    assert line.endswith(" nodes, " + clock(gone, seconds))


def test_where_words_are_too_many_the_time_is_not_cut():
    line = fitted("word " * 30, "12/60 s")
    assert len(line) == 79
    assert line.endswith("…, 12/60 s")


def test_nothing_is_shown_unless_it_is_asked_for(capsys):
    with live_line(False, time.perf_counter(), 60) as report:
        report("best 1")
    assert capsys.readouterr() == ("", "")
