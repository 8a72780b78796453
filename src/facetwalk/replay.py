"""Steps that a GPU replays: recorded once as a CUDA graph, launched as a whole.

A step of a small network is dozens of short kernels, and launching them takes longer than
running them. A solver's steps differ in a few numbers only, which the recording reads from
tensors of its own, as it does with everything else that changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from facetwalk.batching import keep_rows, map_tensors, per_row
from facetwalk.solvers import Passes, ScheduledSolver, Solver, Task

_WORTH_RECORDING = 10
"""Steps of a round from which on a recording pays."""


def can_replay(solver: Solver, x: Tensor) -> bool:
    """Whether steps of `solver` from `x` are worth recording."""
    return isinstance(solver, ScheduledSolver) and x.is_cuda and solver.steps >= _WORTH_RECORDING


class Replay:
    """Takes the steps of a round; what is recorded serves later rounds of the same size."""

    def __init__(self, solver: Solver, task: Task, state: Any, rows: Any) -> None:
        assert isinstance(solver, ScheduledSolver)
        self.solver = solver
        self.passes = task.passes
        self.task = replace(map_tensors(Tensor.clone, task), model=task.model, passes=task.passes)
        self.state = map_tensors(Tensor.clone, state)
        self.best_x, self.best = rows.best_x.clone(), rows.best.clone()
        self.rows = replace(rows, best_x=self.best_x, best=self.best)
        self.numbers: dict[int, list[Tensor]] = {}
        self.graphs: dict[int, tuple[torch.cuda.CUDAGraph | None, Passes]] = {}

    def accepts(self, solver: Solver, task: Task, state: Any) -> bool:
        """Whether what is recorded serves these too."""
        if not isinstance(solver, ScheduledSolver) or task.model is not self.task.model:
            return False
        same_shapes = _shapes([self.task, self.state]) == _shapes([task, state])
        return solver.operations == self.solver.operations and same_shapes

    def load(self, solver: Solver, task: Task, state: Any, rows: Any) -> Replay:
        """Begin another round."""
        assert isinstance(solver, ScheduledSolver)
        self.solver = solver
        _copy([self.task, self.state], [task, state])
        _copy([self.best_x, self.best], [rows.best_x, rows.best])
        self.rows = replace(rows, best_x=self.best_x, best=self.best)
        return self

    def keep(self, active: Tensor) -> None:
        """Go on with some of the rows; what was recorded is of no use then."""
        task, state = self.task.select(active), keep_rows(self.state, active)
        self.__init__(self.solver, task, state, keep_rows(self.rows, active))

    def step(self, t: int) -> None:
        prepared = self.solver.prepare(self.task, self.state, t)
        if prepared is not self.state:
            _copy(self.state, prepared)
        numbers = self.solver.numbers(t)
        kind = len(numbers)
        first = kind not in self.numbers
        if first:
            self.numbers[kind] = [
                torch.tensor(number, dtype=torch.float64, device=self.best.device)
                for number in numbers
            ]
        for tensor, number in zip(self.numbers[kind], numbers, strict=True):
            tensor.fill_(number)
        if first:
            _aside(lambda: self._body(kind), self.best.device)
            return
        if kind not in self.graphs:
            self.graphs[kind] = self._recording(kind)
        graph, passes = self.graphs[kind]
        if graph is None:
            self._body(kind)
            return
        graph.replay()
        self.passes.add(passes)

    def _body(self, kind: int) -> None:
        x = self.state.x
        after, value = self.solver.move(self.task, self.state, *self.numbers[kind])
        better = value > self.best
        self.best_x.copy_(torch.where(per_row(better, x), x, self.best_x))
        self.best.copy_(torch.where(better, value, self.best))
        _copy(self.state, after)

    def _recording(self, kind: int) -> tuple[torch.cuda.CUDAGraph | None, Passes]:
        """The graph of one kind of step and the passes it takes; no graph where it cannot be."""
        counted = replace(self.passes)
        graph = _capture(lambda: self._body(kind))
        passes = self.passes.since(counted)
        self.passes.set(counted)
        return graph, passes


def recorded(work: Callable[[], object], device: torch.device) -> Callable[[], object]:
    """Does `work` once, and returns what does it again: its recording, where there can be one."""
    _aside(work, device)
    graph = _capture(work)
    return work if graph is None else graph.replay


def _aside(work: Callable[[], object], device: torch.device) -> None:
    """Do what is to be recorded on a stream of its own: libraries choose their kernels there."""
    side = torch.cuda.Stream(device)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        work()
    torch.cuda.current_stream().wait_stream(side)


def _capture(work: Callable[[], object]) -> torch.cuda.CUDAGraph | None:
    """The graph of `work`; None where the model or the objective asks the host for a value."""
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            work()
    except RuntimeError:
        return None
    return graph


def _tensors(tree: Any) -> list[Tensor]:
    found: list[Tensor] = []

    def note(tensor: Tensor) -> Tensor:
        found.append(tensor)
        return tensor

    map_tensors(note, tree)
    return found


def _shapes(tree: Any) -> list[tuple[torch.Size, torch.dtype]]:
    return [(tensor.shape, tensor.dtype) for tensor in _tensors(tree)]


def _copy(into: Any, tree: Any) -> None:
    """Put the values of one tree's tensors into those of another."""
    for old, new in zip(_tensors(into), _tensors(tree), strict=True):
        if old is not new:
            old.copy_(new)
