"""The one loop that every method runs in: rounds, best so far, early leaving, counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from facetwalk.batching import keep_rows, per_row
from facetwalk.replay import Replay, can_replay
from facetwalk.solvers import Method, Passes, Solver, Task

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
class Record:
    """What is known of each problem; tensors have a row a problem and are changed in place."""

    x: Tensor
    value: Tensor
    initial_value: Tensor
    passes: Tensor
    """Forward, backward and probe passes, int64 `(B, 3)`."""
    trace: Tensor
    """The best value at each of `trace_steps`, `(B, G)`."""
    stop_at: Tensor | None
    finished: Tensor
    """Which problems have reached their threshold; they change no more."""
    trace_steps: list[int] = field(default_factory=list)

    def follow(self, steps: Tensor) -> None:
        """Keep a trace of these steps, int64 `(G,)`, rising."""
        self.trace_steps = steps.tolist()
        self.trace = self.value[:, None].repeat(1, len(steps))

    def part(self, first: int, last: int) -> Record:
        """A view of the problems from `first` to `last`, the last one included."""
        some = slice(first, last + 1)
        return replace(
            self,
            x=self.x[some],
            value=self.value[some],
            initial_value=self.initial_value[some],
            passes=self.passes[some],
            trace=self.trace[some],
            stop_at=None if self.stop_at is None else self.stop_at[some],
            finished=self.finished[some],
        )

    def absorb(self, rows: Rows) -> None:
        """Take over what rows found, where it beats what is known."""
        best = torch.full_like(self.value, -torch.inf)
        best = best.scatter_reduce(0, rows.problem, rows.best, "amax")
        count = len(rows.problem)
        number = torch.arange(count, device=best.device)
        number = torch.where(rows.best == best[rows.problem], number, count)
        winner = torch.full_like(rows.problem[:1], count - 1).repeat(len(best))
        winner = winner.scatter_reduce(0, rows.problem, number, "amin").clamp_max_(count - 1)
        better = (best > self.value) & ~self.finished
        self.x.copy_(torch.where(per_row(better, self.x), rows.best_x[winner], self.x))
        self.value.copy_(torch.where(better, best, self.value))

    def note_trace(self, rows: Rows, t: int) -> None:
        if t in self.trace_steps:
            column = self.trace[:, self.trace_steps.index(t)]
            best = torch.where(self.finished[rows.problem], -torch.inf, rows.best)
            column.scatter_reduce_(0, rows.problem, best, "amax")

    def count(self, rows: Rows, passes: Passes) -> None:
        """Add the passes that rows took since they were last counted."""
        since, rows.counted = passes.since(rows.counted), replace(passes)
        at_work = (~self.finished[rows.problem]).long()
        members = torch.zeros_like(self.passes[:, 0]).index_add_(0, rows.problem, at_work)
        for kind, taken in enumerate(astuple(since)):
            self.passes[:, kind] += taken * members

    def check(self) -> None:
        """Note which problems have reached their threshold."""
        if self.stop_at is not None:
            self.finished |= self.value >= self.stop_at


@dataclass
class Rows:
    """The rows at work; each tensor has a row for each."""

    problem: Tensor
    """Counted from the first problem of the chunk."""
    start: Tensor
    family: Tensor
    """Rows of one family learn from each other."""
    best_x: Tensor
    best: Tensor
    counted: Passes = field(default_factory=Passes)

    def improve(self, x: Tensor, value: Tensor) -> None:
        better = value > self.best
        self.best_x = torch.where(per_row(better, x), x, self.best_x)
        self.best = torch.where(better, value, self.best)


@dataclass
class Watch:
    """Who looks on, and how long there is."""

    callbacks: Sequence[Callback]
    """Those that see every step."""
    report: Callable[[float, str], None] = lambda share, words: None
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
        self.cancelled |= any(answer is True for answer in answers)

    def nearly_over(self) -> bool:
        """Whether it is time for the closing rounds."""
        return time.perf_counter() > self.began + _CLOSING_AT * (self.deadline - self.began)

    def over(self) -> bool:
        """Whether the work on this chunk has to end."""
        if time.perf_counter() > self.deadline:
            self.late = True
            return True
        return self.cancelled


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
        self, method: Method, task: Task, rows: Rows, record: Record, watch: Watch
    ) -> None:
        self.method, self.task, self.record, self.watch = method, task, record, watch
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
        return solver.again(task, self.rows.best_x, self.runner.state, self.last_round)

    def _runner(self, solver: Solver, task: Task, state: Any) -> _Eager | Replay:
        if not can_replay(solver, state.x) or self.watch.callbacks:
            return _Eager(solver, task, state, self.rows)
        if isinstance(self.runner, Replay) and self.runner.accepts(solver, task, state):
            return self.runner.load(solver, task, state, self.rows)
        return Replay(solver, task, state, self.rows)

    def _note_initial_values(self) -> None:
        first = self.rows.start == 0
        self.record.initial_value[self.rows.problem[first]] = self.rows.best[first]

    def _show(self, runner: _Eager | Replay) -> None:
        watch, steps = self.watch, self.method.steps
        watch.steps = max(watch.steps, self.taken)
        if isinstance(runner, _Eager) and watch.callbacks:
            place = self.taken, steps, watch.chunk, watch.chunks
            problem = self.rows.problem + watch.first_problem
            watch.sees(Step(*place, problem, runner.x, runner.value, self.rows.best))
        share = (watch.chunk + self.taken / steps) / watch.chunks
        watch.report(share, f"step {self.taken} of {steps}, {len(self.rows.best)} rows")
        waits = watch.deadline < float("inf") and self.rows.best.is_cuda
        if waits and self.taken % _LOOK_EVERY == 0:
            torch.cuda.synchronize(self.rows.best.device)

    def _settle(self) -> None:
        """Bring the record up to date."""
        self.record.absorb(self.rows)
        self.record.count(self.rows, self.task.passes)
        self.record.check()

    def _let_finished_leave(self) -> None:
        if self.record.stop_at is None or self.runner is None:
            return
        active = (~self.record.finished[self.rows.problem]).nonzero().squeeze(1)
        share = len(active) / len(self.rows.best)
        if share == 1 or (isinstance(self.runner, Replay) and share > _SHRINK_AT):
            return
        self.task = self.task.select(active)
        self.runner.keep(active)
        self.rows = self.runner.rows


def run_chunk(method: Method, task: Task, rows: Rows, record: Record, watch: Watch) -> None:
    """Run `method` from `rows.best_x` and put what it finds into `record`."""
    _Chunk(method, task, rows, record, watch).run()
