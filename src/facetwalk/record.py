"""What a search knows: of each problem, and of each row that is at work on one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass, field, replace

import torch
from torch import Tensor

from facetwalk.batching import per_row
from facetwalk.solvers import Passes

Exactly = Callable[[Tensor, Tensor], Tensor]
"""`(numbers of problems (N,), points (N, *shape)) -> values (N,)`, without rounded products."""


@dataclass
class Record:
    """What is known of each problem; tensors have a row a problem and are changed in place."""

    x: Tensor
    initial_x: Tensor
    """The first start."""
    value: Tensor
    initial_value: Tensor
    passes: Tensor
    """Forward, backward and probe passes, int64 `(B, 3)`."""
    trace: Tensor
    """The best value at each of `trace_steps`, `(B, G)`."""
    stop_at: Tensor | None
    finished: Tensor
    """Which problems have reached their threshold; they change no more."""
    confirmed: Tensor
    """Which of them have, also if their points are evaluated exactly, bool `(B,)`."""
    passes_at_finish: Tensor
    """What `passes` of a row were then, int64 `(B, 3)`."""
    trace_steps: list[int] = field(default_factory=list)
    first: int = 0
    """The first problem's number among all."""
    exactly: Exactly | None = None
    """For a search that rounds products; None if its values are exact."""

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
            initial_x=self.initial_x[some],
            value=self.value[some],
            initial_value=self.initial_value[some],
            passes=self.passes[some],
            trace=self.trace[some],
            stop_at=None if self.stop_at is None else self.stop_at[some],
            finished=self.finished[some],
            confirmed=self.confirmed[some],
            passes_at_finish=self.passes_at_finish[some],
            first=self.first + first,
        )

    def snapshot(self) -> list[Tensor]:
        """All that a search changes, as it is now."""
        return [tensor.clone() for tensor in self._changing]

    def restore(self, snapshot: list[Tensor]) -> None:
        for tensor, before in zip(self._changing, snapshot, strict=True):
            tensor.copy_(before)

    @property
    def _changing(self) -> list[Tensor]:
        found = [self.x, self.initial_x, self.value, self.initial_value, self.passes, self.trace]
        return [*found, self.finished, self.confirmed, self.passes_at_finish]

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
            self.passes[:, kind].add_(members, alpha=taken)

    def check(self, rows: Rows) -> None:
        """Note which problems have reached their threshold, as of when rows were counted."""
        if self.stop_at is None:
            return
        new = ~self.finished & (self.value >= self.stop_at)
        self.finished |= new
        if self.exactly is not None:
            for kind, taken in enumerate(astuple(rows.counted)):
                self.passes_at_finish[:, kind].masked_fill_(new, taken)

    def confirm(self, rows: Rows) -> None:
        """Go on with problems that reach their threshold only because products are rounded."""
        if self.exactly is None or self.stop_at is None:
            return
        while len(claimed := (self.finished & ~self.confirmed).nonzero().squeeze(1)):
            value = self.exactly(claimed + self.first, self.x[claimed])
            self.passes[claimed, 0] += 1
            reached = value >= self.stop_at[claimed]
            self.confirmed[claimed] = reached
            self._reopen(claimed[~reached], value[~reached], rows)
            self.absorb(rows)
            self.check(rows)

    def _reopen(self, problems: Tensor, value: Tensor, rows: Rows) -> None:
        """Go on with finished problems at whose points the objective is only `value`."""
        exact = torch.full_like(self.value, torch.inf)
        exact[problems] = value.nan_to_num(nan=-torch.inf)
        claims = rows.best == self.value[rows.problem]
        lowered = torch.minimum(rows.best, exact[rows.problem])
        rows.best.copy_(torch.where(claims, lowered, rows.best))  # a recording reads it
        self.value[problems] = exact[problems]
        self.finished[problems] = False
        taken = torch.tensor(astuple(rows.counted), device=value.device)
        members = torch.bincount(rows.problem, minlength=len(self.value))[problems]
        self.passes[problems] += (taken - self.passes_at_finish[problems]) * members[:, None]


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
