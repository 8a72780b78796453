"""What calls with one model leave to each other: recorded steps."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import Any

import torch
from torch import Tensor, nn

from facetwalk.replay import Replay, signature
from facetwalk.sites import Sites
from facetwalk.solvers import Solver, Task
from facetwalk.tape import Tape, compiled

_KEPT = 8
"""Recordings of rounds of different sizes or solvers; the one that was not used longest goes."""
_CLOSE = {"rtol": 1e-3, "atol": 1e-4, "equal_nan": True}
_ROUGHLY = {"rtol": 3e-2, "atol": 3e-2, "equal_nan": True}
"""As near as values with rounded products come to those without."""


class Recordings:
    """Recorded steps, for many calls of `maximize` with one model.

    On a CPU the first step of each kind is noted while it is taken, and the second checks what was
    noted; on a GPU the second is recorded. From then on, also in later calls with as many
    problems, steps are replayed: on a CPU, for models as small as a critic, in a fraction of the
    time. Weights may change from call to call, what the model does may not. Steps of a model that
    looks at values to decide what to do are taken as they are.

    `compile` has the steps on a CPU compiled, which takes seconds once and needs a C++ compiler.

    >>> import facetwalk as fw
    >>> net = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1)).eval()
    >>> problem = fw.Problem(net, fw.objectives.Output(0), fw.Box(-1, 1, shape=(2,)))
    >>> recordings = Recordings()
    >>> for seed in range(3):
    ...     result = fw.maximize(problem, seed=seed, recordings=recordings)
    """

    def __init__(self, compile: bool = False) -> None:
        self.compile = compile
        self._lock = Lock()
        self._replays: list[Replay] = []
        self._found: tuple[Any, list[tuple[Sites, bool]]] | None = None

    def found_in(self, model: nn.Module) -> list[tuple[Sites, bool]]:
        """Where to put, or find, what `Task.sites` finds in a model."""
        known = signature(model)
        if self._found is None or self._found[0] != known:
            self._found = known, []
        return self._found[1]

    @contextmanager
    def borrowed(self) -> Iterator[Recordings | None]:
        """These for one call; None while another one has them."""
        free = self._lock.acquire(blocking=False)
        try:
            yield self if free else None
        finally:
            if free:
                self._lock.release()

    def hold(self, claimed: Tensor, value: Tensor, rounded: bool) -> bool:
        """Whether replayed steps claim the values that model and objective have; if not, everything
        is forgotten.

        `rounded` is whether they round products, which the values do not.
        """
        if torch.allclose(claimed, value, **(_ROUGHLY if rounded else _CLOSE)):
            return True
        self._replays.clear()
        return False

    def replay(self, solver: Solver, task: Task, state: Any, rows: Any) -> Replay:
        """What takes the steps of a round."""
        served = (each for each in self._replays if each.load(solver, task, state, rows))
        replay = next(served, None)
        if replay is None:
            recorder = None if state.x.is_cuda else partial(_OnTape, self.compile)
            replay = Replay(solver, task, state, rows, recorder)
        others = [each for each in self._replays if each is not replay]
        self._replays = [replay, *others[: _KEPT - 1]]
        return replay


class _OnTape:
    """A recording on a tape: of the first time, and checked in the second."""

    def __init__(self, compile: bool, work: Callable[[], object], changing: list[Tensor]) -> None:
        self.compile, self.work, self.changing = compile, work, changing
        self.tape: Tape | None = None
        self.again: Callable[[], object] | None = None
        self.is_rare = False
        """Whether it is done once a round: no matter for a compiler."""

    def begin(self) -> None:
        if self.tape is not None:
            self.tape.begin()
            self.is_rare = self.again is None

    def run(self) -> None:
        if self.again is not None:
            self.again()
        elif self.tape is None:
            self._note()
        else:
            self._check(self.tape)

    def _note(self) -> None:
        before = self._values()
        try:
            self.tape = Tape(self.work, self.changing)
        except Exception:  # what is wrong with the work itself shows when it is done plainly
            self._put(before)
            self._give_up()

    def _check(self, tape: Tape) -> None:
        before = self._values()
        try:
            tape.begin()
            tape.replay()
        except Exception:
            self._put(before)
            return self._give_up()
        found = self._values()
        self._put(before)
        self.work()
        if not self._are_close(found):
            self.tape, self.again = None, self.work
            return None
        compiles = self.compile and not self.is_rare
        self.again = self._compiled(tape, before) if compiles else tape.replay
        return None

    def _compiled(self, tape: Tape, before: list[Tensor]) -> Callable[[], object]:
        again, after = compiled(tape), self._values()
        self._put(before)
        again()
        found = self._values()
        self._put(after)
        if self._are_close(found):
            return again
        warnings.warn(
            "compiled steps differ from plain ones by more than rounding; they are replayed as "
            "they are",
            RuntimeWarning,
            stacklevel=2,
        )
        return tape.replay

    def _give_up(self) -> None:
        self.tape, self.again = None, self.work
        self.work()

    def _values(self) -> list[Tensor]:
        return [tensor.clone() for tensor in self.changing]

    def _put(self, values: list[Tensor]) -> None:
        for tensor, value in zip(self.changing, values, strict=True):
            tensor.copy_(value)

    def _are_close(self, values: list[Tensor]) -> bool:
        """Whether the tensors that change hold these values."""
        pairs = zip(self.changing, values, strict=True)
        return all(
            torch.allclose(a, b, **_CLOSE) if a.is_floating_point() else torch.equal(a, b)
            for a, b in pairs
        )
