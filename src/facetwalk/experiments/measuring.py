"""Cells are measured one after the other, or side by side in processes."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

import torch

from facetwalk.experiments.experiment import Cell, Record
from facetwalk.progress import Report
from facetwalk.types import FacetwalkError

Measured = Iterator[tuple[Cell, Record]]
"""Cells with their records, each as soon as it is there."""


def measured(cells: Sequence[Cell], processes: int, report: Report) -> Measured:
    """Measure cells, so many at a time; those that a process is to measure must be picklable.

    >>> [record for _, record in measured([Cell({}, "", dict)], 1, lambda share, text: None)]
    [{}]
    """
    if min(processes, len(cells)) > 1:
        yield from _side_by_side(cells, processes, report)
        return
    for number, cell in enumerate(cells):
        report(number / len(cells), cell.words)
        yield cell, cell.measure()


def _side_by_side(cells: Sequence[Cell], processes: int, report: Report) -> Measured:
    """After a failure nothing new begins, what is under way is finished, and then it is raised."""
    context, failure = multiprocessing.get_context("spawn"), None
    with ProcessPoolExecutor(processes, context, _begin, (processes,)) as pool:
        asked = {pool.submit(cell.measure): cell for cell in cells}
        left = set(asked)
        try:
            while left:
                done, left = wait(left, return_when=FIRST_COMPLETED)
                for each in done:
                    if each.exception() is None:
                        yield asked[each], each.result()
                        report(1 - len(left) / len(cells), f"{asked[each].words} is done")
                    else:
                        failure = failure or each.exception()
                        left = {other for other in left if not other.cancel()}
        finally:
            pool.shutdown(cancel_futures=True)
    if isinstance(failure, BrokenProcessPool):
        raise FacetwalkError(
            "a process was killed before its measurement was done, perhaps for want of memory: "
            "run again with fewer at a time; what is done is kept"
        ) from failure
    if failure is not None:
        raise failure


def _begin(processes: int) -> None:
    """A worker takes its share of the cores, and ends where its parent is killed."""
    cores = os.cpu_count() or 1
    torch.set_num_threads(max(1, min(torch.get_num_threads(), cores // processes)))
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
