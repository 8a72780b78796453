"""The one loop that every method runs in: rounds, best so far, early leaving, counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from facetwalk.batching import keep_rows
from facetwalk.record import Record, Rows
from facetwalk.recordings import Recordings
from facetwalk.replay import Replay, can_replay, is_worth_recording
from facetwalk.solvers import Method, Round, Solver, Task

_CHECK_EVERY = 5
"""Steps between two checks of which problems have reached their threshold."""
_LOOK_EVERY = 25
"""Steps between two looks from the host at a GPU: a look waits for it."""
_CLOSING_AT = 0.85
"""Share of the time after which, where there is a deadline, the closing rounds begin."""
_SHRINK_AT = 0.7
"""A recorded step goes on with problems that are done until so few rows are left at work."""


@dataclass(frozen=True)
class Step:
    """What a callback sees after each step. A row is one start of one problem, or one member of
    its population."""

    step: int
    """Steps taken, from 1."""
    steps: int
    """Steps that the method takes at most."""
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
    """The best value of each row so far in this round, `(N,)`."""


Callback = Callable[[Step], object]
"""Called after each step; returns True to stop the work."""


@dataclass
class Watch:
    """Who looks on, and how long there is."""

    callbacks: Sequence[Callback]
    """Those that see every step."""
    report: Callable[[float, str], None] | None = None
    chunk: int = 0
    chunks: int = 1
    first_problem: int = 0
    """The chunk's first problem."""
    began: float = 0.0
    deadline: float = float("inf")
    """When the work on this chunk begins and has to end, as `time.perf_counter` counts."""
    cancelled: bool = False
    """Whether a callback ended the work."""
    late: bool = False
    """Whether the clock ended the work on a chunk."""
    steps: int = 0
    """The most steps that rows of a chunk have taken."""

    def sees(self, step: Step) -> None:
        """Show a step to the callbacks."""
        answers = [callback(step) for callback in self.callbacks]
        self.cancelled |= any(_is_true(answer) for answer in answers)

    def nearly_over(self) -> bool:
        """Whether it is time for the closing rounds."""
        return time.perf_counter() > self.began + _CLOSING_AT * (self.deadline - self.began)

    def over(self) -> bool:
        """Whether the work on this chunk has to end."""
        if time.perf_counter() > self.deadline:
            self.late = True
            return True
        return self.cancelled


def _is_true(answer: object) -> bool:
    """Whether it is the truth value True, of whichever library: no other object stops the work."""
    kind = getattr(answer, "dtype", None)
    return answer is True or (str(kind) in ("bool", "torch.bool") and bool(answer))


class _Eager:
    """Takes steps one operation after the other."""

    def __init__(self, solver: Solver, task: Task, state: Any, rows: Rows) -> None:
        self.solver, self.task, self.state, self.rows = solver, task, state, rows
        self.x, self.value = state.x, rows.best

    def step(self, t: int) -> None:
        self.x = self.state.x
        self.state, self.value = self.solver.step(self.task, self.state, t)
        self.rows.improve(self.x, self.value)

    def keep(self, active: Tensor) -> None:
        """Go on with some of the rows."""
        self.task = self.task.select(active)
        self.state, self.rows = keep_rows(self.state, active), keep_rows(self.rows, active)


class _Chunk:
    """Rows on their way through the rounds of a method."""

    def __init__(
        self,
        method: Method,
        task: Task,
        rows: Rows,
        record: Record,
        watch: Watch,
        recordings: Recordings | None,
    ) -> None:
        self.method, self.task, self.record, self.watch = method, task, record, watch
        self.recordings = recordings
        self.runner: _Eager | Replay | None = None
        self.rows = rows
        self.taken = 0
        self.last_round = range(0)

    def run(self) -> None:
        memory = None
        rounds = self.method.rounds
        for number, solver in enumerate(rounds):
            if 0 < number < len(rounds) - self.method.closing and self.watch.nearly_over():
                self.watch.late = True
                continue
            task, x = self.method.begin(self.task, self.rows, memory, number)
            lowest = torch.full_like(self.rows.best, -torch.inf)
            self.rows = replace(self.rows, best_x=x, best=lowest)
            began = self.taken
            self._run_round(solver, task, first=number == 0)
            self.last_round = range(began, self.taken)
            if not len(self.rows.best) or self.watch.over():
                return
            memory = self.method.learn(memory, self.rows, number)

    def _run_round(self, solver: Solver, task: Task, first: bool) -> None:
        runner = self.runner = self._runner(solver, task, self._state(solver, task))
        for t in range(solver.steps):
            runner.step(t)
            self.rows = runner.rows
            if first and t == 0:
                self._note_initial_values()
            self.record.note_trace(self.rows, self.taken)
            self.taken += 1
            self._show(runner)
            if self.watch.over():
                break
            if self.record.stop_at is not None and t % _CHECK_EVERY == 0:
                self._settle()
                if t % _LOOK_EVERY == 0 or not self.rows.best.is_cuda:
                    self._let_finished_leave()
                    if not len(self.rows.best):
                        return
        self.rows.improve(runner.state.x, runner.task.value(runner.state.x))
        self.record.note_trace(self.rows, self.taken - 1)
        self._settle()
        self._let_finished_leave()

    def _state(self, solver: Solver, task: Task) -> Any:
        if self.runner is None:
            return solver.init(task, self.rows.best_x)
        before = Round(self.runner.solver, self.runner.state, self.last_round)
        return solver.again(task, self.rows.best_x, before)

    def _runner(self, solver: Solver, task: Task, state: Any) -> _Eager | Replay:
        if self.watch.callbacks:
            return _Eager(solver, task, state, self.rows)
        if self.recordings is not None and is_worth_recording(solver):
            return self.recordings.replay(solver, task, state, self.rows)
        if not can_replay(solver, state.x):
            return _Eager(solver, task, state, self.rows)
        if isinstance(self.runner, Replay) and self.runner.load(solver, task, state, self.rows):
            return self.runner
        return Replay(solver, task, state, self.rows, rounds=self._rounds_alike())

    def _rounds_alike(self) -> tuple[Solver, ...]:
        """Rounds that may share recordings, if their solvers' steps do: where members climb
        alternatives, and the last rounds an objective of no such form, they do not."""
        objective = self.task.objective
        if (
            objective.has_alternatives
            and objective.as_alternative(len(self.rows.best)) is objective
        ):
            return ()
        return self.method.rounds

    def _note_initial_values(self) -> None:
        first = self.rows.start == 0
        problem = self.rows.problem[first]
        self.record.initial_value[problem] = self.rows.best[first]
        self.record.initial_x[problem] = self.rows.best_x[first]

    def _show(self, runner: _Eager | Replay) -> None:
        watch, steps = self.watch, self.method.steps
        watch.steps = max(watch.steps, self.taken)
        if isinstance(runner, _Eager) and watch.callbacks:
            place = self.taken, steps, watch.chunk, watch.chunks
            problem = self.rows.problem + watch.first_problem
            watch.sees(Step(*place, problem, runner.x, runner.value, self.rows.best))
        if watch.report is not None:
            share = (watch.chunk + self.taken / steps) / watch.chunks
            watch.report(share, f"step {self.taken} of {steps}, {len(self.rows.best)} rows")
        waits = watch.deadline < float("inf") and self.rows.best.is_cuda
        if waits and self.taken % _LOOK_EVERY == 0:
            torch.cuda.synchronize(self.rows.best.device)

    def _settle(self) -> None:
        """Bring the record up to date."""
        self.record.absorb(self.rows)
        self.record.count(self.rows, self.task.passes)
        self.record.check(self.rows)

    def _let_finished_leave(self) -> None:
        if self.record.stop_at is None or self.runner is None:
            return
        self.record.confirm(self.rows)
        active = (~self.record.finished[self.rows.problem]).nonzero().squeeze(1)
        share = len(active) / len(self.rows.best)
        if share == 1 or (isinstance(self.runner, Replay) and share > _SHRINK_AT):
            return
        self.task = self.task.select(active)
        self.runner.keep(active)
        self.rows = self.runner.rows


def run_chunk(
    method: Method,
    task: Task,
    rows: Rows,
    record: Record,
    watch: Watch,
    recordings: Recordings | None = None,
) -> bool:
    """Run `method` from `rows.best_x` and put what it finds into `record`.

    Whether there is enough memory for the rows; if not, `record` is as it was.
    """
    before = record.snapshot()
    try:
        _Chunk(method, task, rows, record, watch, recordings).run()
    except torch.OutOfMemoryError:
        record.restore(before)
        return False
    return True
