"""Cells are measured one after the other, or side by side in processes."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed

import torch

from facetwalk.experiments.experiment import Cell, Record
from facetwalk.progress import Report

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
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, _share_cores, (processes,)) as pool:
        waiting = {pool.submit(cell.measure): cell for cell in cells}
        try:
            for number, done in enumerate(as_completed(waiting), 1):
                yield waiting[done], done.result()
                report(number / len(cells), f"{waiting[done].words} is done")
        finally:
            pool.shutdown(cancel_futures=True)


def _share_cores(processes: int) -> None:
    cores = os.cpu_count() or 1
    torch.set_num_threads(max(1, min(torch.get_num_threads(), cores // processes)))
