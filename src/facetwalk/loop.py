"""The one loop that every solver runs in: chunks of rows, best so far, early leaving, counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from facetwalk.batching import keep_rows, per_row
from facetwalk.solvers import Passes, Solver, Task

_CHECK_EVERY = 5
"""Steps between two looks at which problems have reached their threshold: a look waits for the
device."""


@dataclass(frozen=True)
class Step:
    """What a callback sees after each step. A row is one start of one problem."""

    step: int
    """Steps taken, from 1."""
    steps: int
    """Steps that the solver takes at most."""
    chunk: int
    """Number of the chunk of rows at work, from 0."""
    chunks: int
    problem: Tensor
    """The problem of each row still at work, int64 `(N,)`."""
    x: Tensor
    """Where each row was evaluated, `(N, *shape)`."""
    value: Tensor
    """The objective there, `(N,)`."""
    best: Tensor
    """The best value of each row so far, `(N,)`."""


Callback = Callable[[Step], object]
"""Called after each step; returns True to stop the work."""


@dataclass
class Record:
    """What is known of each problem; tensors have a row a problem."""

    x: Tensor
    value: Tensor
    initial_value: Tensor
    passes: Tensor
    """Forward, backward and probe passes, int64 `(B, 3)`."""
    trace_steps: list[int]
    trace: Tensor
    """The best value at each of `trace_steps`, `(B, G)`."""
    stop_at: Tensor | None
    stopped: bool = False
    """Whether a callback ended the work."""

    def reached(self, problem: Tensor) -> Tensor:
        """Whether each of these problems has passed its threshold."""
        if self.stop_at is None:
            return torch.zeros_like(problem, dtype=torch.bool)
        return (self.value >= self.stop_at)[problem]

    def absorb(self, rows: Rows) -> None:
        """Take over what rows found, where it beats what is known."""
        best = torch.full_like(self.value, -torch.inf)
        best = best.scatter_reduce(0, rows.problem, rows.best, "amax")
        wins = (rows.best == best[rows.problem]) & (rows.best > self.value[rows.problem])
        winners = wins.nonzero().squeeze(1).flip(0)  # among equals the first row is written last
        self.x[rows.problem[winners]] = rows.best_x[winners]
        self.value = torch.maximum(self.value, best)

    def note_trace(self, rows: Rows, t: int) -> None:
        if t in self.trace_steps:
            column = self.trace[:, self.trace_steps.index(t)]
            column.scatter_reduce_(0, rows.problem, rows.best, "amax")

    def count(self, problem: Tensor, passes: Passes) -> None:
        """Add the passes that rows of these problems took."""
        taken = torch.tensor([passes.forward, passes.backward, passes.probe])
        self.passes.index_add_(0, problem.cpu(), taken.expand(len(problem), 3))


@dataclass
class Rows:
    """The rows at work; each tensor has a row for each."""

    problem: Tensor
    start: Tensor
    best_x: Tensor
    best: Tensor

    def improve(self, x: Tensor, value: Tensor) -> None:
        better = value > self.best
        self.best_x = torch.where(per_row(better, x), x, self.best_x)
        self.best = torch.where(better, value, self.best)


def run_chunk(
    solver: Solver,
    task: Task,
    rows: Rows,
    record: Record,
    callbacks: Sequence[Callback],
    place: tuple[int, int],
) -> None:
    """Run `solver` from `rows.best_x` and put what it finds into `record`.

    `place` is the number of this chunk and the number of chunks.
    """
    state = solver.init(task, rows.best_x)
    for t in range(solver.steps):
        x = state.x
        state, value = solver.step(task, state, t)
        rows.improve(x, value)
        record.note_trace(rows, t)
        if t == 0:
            first = rows.start == 0
            record.initial_value[rows.problem[first]] = value[first]
        step = Step(t + 1, solver.steps, *place, rows.problem, x, value, rows.best)
        answers = [callback(step) for callback in callbacks]
        if any(answer is True for answer in answers):
            record.stopped = True
            break
        if record.stop_at is not None and t % _CHECK_EVERY == 0:
            record.absorb(rows)
            reached = record.reached(rows.problem)
            if bool(reached.any()):
                record.count(rows.problem[reached], task.passes)
                active = (~reached).nonzero().squeeze(1)
                if not len(active):
                    return
                task = task.select(active)
                state, rows = keep_rows(state, active), keep_rows(rows, active)
    rows.improve(state.x, task.value(state.x))
    record.note_trace(rows, solver.steps - 1)
    record.absorb(rows)
    record.count(rows.problem, task.passes)
