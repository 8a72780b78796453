"""Cells in one process and in several: the same records, and what becomes of failures."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from facetwalk import FacetwalkError, InputError
from facetwalk.experiments.drawing import blank_figure
from facetwalk.experiments.experiment import Cell, Experiment, Plan
from facetwalk.experiments.measuring import measured
from facetwalk.experiments.reproducing import reproduce
from facetwalk.types import MissingExtraError

PLAIN = Experiment("plain", "", [], lambda _: [], lambda _: [], lambda _: blank_figure(1, 1))


def squared(number):
    return {"square": number**2, "process": os.getpid()}


def slowly(number):
    time.sleep(1)
    return squared(number)


def touched(file):
    time.sleep(0.05)
    file.touch()
    return {}


def never_done(file):
    file.with_suffix(".new").write_text(str(os.getpid()))
    file.with_suffix(".new").rename(file)
    time.sleep(600)


def refused(words):
    raise InputError(words)


def without_extra():
    raise MissingExtraError("flying", "wings")


def killed():
    os.kill(os.getpid(), signal.SIGKILL)


def cells(*measures):
    return [Cell({"part": part}, "", measure) for part, measure in enumerate(measures)]


@pytest.mark.parametrize("processes", [1, 2])
def test_every_cell_gets_its_record(processes):
    said = []
    asked = cells(*(partial(squared, number) for number in range(5)))
    found = list(measured(asked, processes, lambda share, text: said.append((share, text))))
    found.sort(key=lambda pair: pair[0].about["part"])
    assert [record["square"] for _, record in found] == [0, 1, 4, 9, 16]
    here = {record["process"] for _, record in found} == {os.getpid()}
    assert here == (processes == 1)
    assert len(said) == 5
    assert all("part" in text for _, text in said)


def test_what_is_under_way_at_a_failure_is_kept(tmp_path):
    plan = Plan({}, cells(partial(slowly, 3), partial(refused, "no such level")))
    with pytest.raises(InputError, match="no such level"):
        reproduce(PLAIN, plan, tmp_path, processes=2)
    mended = Plan({}, cells(partial(refused, "measured twice"), partial(squared, 2)))
    records = reproduce(PLAIN, mended, tmp_path).records
    assert [(record["part"], record["square"]) for record in records] == [(0, 9), (1, 4)]


def test_nothing_begins_after_a_failure(tmp_path):
    late = [partial(touched, tmp_path / str(number)) for number in range(60)]
    with pytest.raises(InputError, match="not this one"):
        list(measured(cells(partial(refused, "not this one"), *late), 2, lambda share, text: None))
    assert len(list(tmp_path.iterdir())) < 60


def test_a_process_that_is_killed_is_said_in_words():
    with pytest.raises(FacetwalkError, match=r"killed .* run again with fewer at a time"):
        list(measured(cells(killed, killed), 2, lambda share, text: None))


def test_a_missing_extra_is_named_across_processes():
    with pytest.raises(MissingExtraError, match=r"flying needs .* 'facetwalk\[wings\]'"):
        list(measured(cells(without_extra, without_extra), 2, lambda share, text: None))


def is_at_work(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def waited_for(condition, seconds=60):
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.1)
    return condition()


def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    here = Path(__file__)
    files = [tmp_path / "one", tmp_path / "other"]
    words = f"""
from pathlib import Path
from {here.stem} import cells, measured, never_done, partial
files = [Path(file) for file in {[str(file) for file in files]}]
list(measured(cells(*(partial(never_done, file) for file in files)), 2, lambda share, text: None))
"""
    parent = subprocess.Popen([sys.executable, "-c", words], cwd=here.parent)
    try:
        assert waited_for(lambda: all(file.exists() for file in files))
    finally:
        parent.kill()
        parent.wait()
    workers = [int(file.read_text()) for file in files]
    assert waited_for(lambda: not any(is_at_work(worker) for worker in workers))
