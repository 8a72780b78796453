"""Steps that are replayed: recorded once as a whole, by a GPU as a CUDA graph, by a CPU on a tape.

A step of a small network is dozens of short kernels, and launching them takes longer than
running them. A solver's steps differ in a few numbers only, which the recording reads from
tensors of its own, as it does with everything else that changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from typing import Any, Protocol
from weakref import WeakMethod

import torch
from torch import Tensor, nn

from facetwalk.batching import keep_rows, map_tensors, per_row
from facetwalk.gpu_memory import make_room
from facetwalk.models import PerProblemModel
from facetwalk.objectives import Guided
from facetwalk.precision import rounds_products
from facetwalk.solvers import Passes, ScheduledSolver, Solver, Task
from facetwalk.solvers.scheduled import Number

_WORTH_RECORDING = 10
"""Steps of a round from which on a recording pays."""
_SCHEDULED = 1000
"""Steps of which it is computed once for all rounds what their numbers and kinds are."""


def can_replay(solver: Solver, x: Tensor) -> bool:
    """Whether a GPU had better record the steps of `solver` from `x`."""
    return is_worth_recording(solver) and x.is_cuda


def is_worth_recording(solver: Solver) -> bool:
    return isinstance(solver, ScheduledSolver) and solver.steps >= _WORTH_RECORDING


class Recording(Protocol):
    """Work that is done as it is at first, and replayed later on."""

    def run(self) -> None: ...

    def begin(self) -> None:
        """Another round begins: tensors not known to change may have changed, too."""


Recorder = Callable[[Callable[[], object], list[Tensor]], Recording]
"""`(work, the tensors that change between two times) -> its recording`."""

Kind = tuple[int, tuple[str, ...]]
"""How many numbers a step has, and what it renews."""


class Replay:
    """Takes the steps of a round; what is recorded serves later rounds of the same size.

    `rounds` are solvers that it had better serve, too.
    """

    def __init__(
        self,
        solver: Solver,
        task: Task,
        state: Any,
        rows: Any,
        recorder: Recorder | None = None,
        rounds: Sequence[Solver] = (),
    ) -> None:
        assert isinstance(solver, ScheduledSolver)
        self.solver, self.rounds = solver, rounds
        self.fixed = self._fixed(solver)
        self.schedule = _schedule(solver, task)
        self.passes, self.counted = task.passes, Passes()
        self.task = replace(map_tensors(Tensor.clone, task), model=task.model, passes=task.passes)
        self.state = map_tensors(Tensor.clone, state)
        self.best_x, self.best = rows.best_x.clone(), rows.best.clone()
        self.rows = replace(rows, best_x=self.best_x, best=self.best)
        self.recorder = recorder
        self.record = recorder or partial(OnGpu, pool=torch.cuda.graph_pool_handle())
        self.made_of = signature(task.model)
        self.form, self.tensors = _form(self.task, self.state)
        self.numbers: dict[Kind, list[Number]] = {}
        self.written: dict[Kind, tuple[float, ...]] = {}
        self.recordings: dict[Kind, tuple[Recording, Passes]] = {}

    def load(self, solver: Solver, task: Task, state: Any, rows: Any) -> bool:
        """Begin another round, if what is recorded serves it."""
        if not isinstance(solver, ScheduledSolver) or solver.operations != self.solver.operations:
            return False
        if self._fixed(solver) != self.fixed:
            return False
        forms = (_form(each, state) for each in _ways_to_write(task))
        tensors = next((tensors for form, tensors in forms if form == self.form), None)
        if tensors is None or not self._take(task.model):
            return False
        if solver != self.solver:
            self.solver, self.schedule = solver, _schedule(solver, task)
        self.passes = self.task.passes = task.passes
        _copy(self.tensors, tensors)
        _copy([self.best_x, self.best], [rows.best_x, rows.best])
        self.rows = replace(rows, best_x=self.best_x, best=self.best)
        for recording, _ in self.recordings.values():
            recording.begin()
        return True

    def _fixed(self, solver: ScheduledSolver) -> dict[int, float]:
        """The numbers, by their places, that are the same in all steps of all rounds. They become
        part of what is recorded: without momentum, nothing is done for it."""
        alike = [
            each.steady
            for each in self.rounds
            if isinstance(each, ScheduledSolver) and each.operations == solver.operations
        ]
        steady = solver.steady.items()
        return {at: number for at, number in steady if all(s.get(at) == number for s in alike)}

    def _take(self, model: nn.Module) -> bool:
        """Go on with a model that is the same but for its problems' data, if it is."""
        own = self.task.model
        if signature(model) != self.made_of:
            return False
        if own is model:
            return True
        return isinstance(own, PerProblemModel) and own.load(model)

    def keep(self, active: Tensor) -> None:
        """Go on with some of the rows; what was recorded is of no use then."""
        task, state = self.task.select(active), keep_rows(self.state, active)
        self.recordings.clear()
        if self.best.is_cuda:
            torch.cuda.empty_cache()  # none can be had from there while another one is recorded
        rows = keep_rows(self.rows, active)
        self.__init__(self.solver, task, state, rows, self.recorder, self.rounds)

    def step(self, t: int) -> None:
        prepared = self.solver.prepare(self.task, self.state, t)
        if prepared is not self.state:
            _copy(self.state, prepared)
        known = t < len(self.schedule)
        numbers, kind = self.schedule[t] if known else _scheduled(self.solver, self.task, t)
        self.counted.set(self.passes)
        if kind in self.recordings:
            self._write(numbers, kind)
            recording, passes = self.recordings[kind]
            recording.run()
            self.passes.set(self.counted)
            self.passes.add(passes)
        else:
            recording = self._recording(kind, numbers)
            recording.run()
            self.recordings[kind] = recording, self.passes.since(self.counted)

    def _write(self, numbers: tuple[float, ...], kind: Kind) -> None:
        """Put the numbers of a step where its recording reads them, but for those there already."""
        for place, number, old in zip(self.numbers[kind], numbers, self.written[kind], strict=True):
            if isinstance(place, Tensor) and number != old:
                place.fill_(number)
        self.written[kind] = numbers

    def _recording(self, kind: Kind, numbers: tuple[float, ...]) -> Recording:
        on_device = {"dtype": torch.float64, "device": self.best.device}  # without waiting for it
        self.numbers[kind] = [
            self.fixed[at] if at in self.fixed else torch.full((), number, **on_device)
            for at, number in enumerate(numbers)
        ]
        self.written[kind] = numbers
        changing = [*_tensors(self.state), self.best_x, self.best, *_tensors(self.numbers[kind])]
        body = WeakMethod(self._body)  # not to be kept alive, and its memory, by what it records

        def work() -> None:
            method = body()
            assert method is not None
            method(kind)

        return self.record(work, changing)

    def _body(self, kind: Kind) -> None:
        self.passes.set(self.counted)  # an earlier attempt at this step may have failed
        state, numbers = self.state, self.numbers[kind]
        if kind[1]:
            state = self.solver.renew(self.task, state, kind[1], *numbers)
        after, value = self.solver.move(self.task, state, *numbers)
        better = value > self.best
        torch.where(per_row(better, state.x), state.x, self.best_x, out=self.best_x)
        torch.where(better, value, self.best, out=self.best)
        _copy(self.state, after)


class OnGpu:
    """A recording as a CUDA graph, of the second time: in the first, libraries choose kernels."""

    def __init__(
        self, work: Callable[[], object], changing: list[Tensor], pool: Any = None
    ) -> None:
        self.work, self.device, self.pool = work, changing[0].device, pool
        self.times = 0
        self.graph: torch.cuda.CUDAGraph | None = None

    def begin(self) -> None:
        pass

    def run(self) -> None:
        self.times += 1
        if self.times == 1:
            _aside(self.work, self.device)
            return
        if self.times == 2:
            self.graph = _capture(self.work, self.device, self.pool)
        if self.graph is None:
            self.work()
        else:
            self.graph.replay()


def recorded(work: Callable[[], object], device: torch.device) -> Callable[[], object]:
    """Does `work` once, and returns what does it again: its recording, where there can be one."""
    _aside(work, device)
    graph = _capture(work, device)
    return work if graph is None else graph.replay


def _aside(work: Callable[[], object], device: torch.device) -> None:
    """Do what is to be recorded on the stream of recordings: libraries choose their kernels."""
    with _beside(device):
        work()
    torch.cuda.current_stream(device).wait_stream(_side(device))


def _capture(
    work: Callable[[], object], device: torch.device, pool: Any = None
) -> torch.cuda.CUDAGraph | None:
    """The graph of `work`; None where the model or the objective asks the host for a value.

    Graphs of one `pool` may share memory: none keeps anything there from one replay to the next.
    `torch.cuda.graph` would wait for the device and give back the memory that is at hand.
    """
    if device.type == "cuda":
        make_room(device)
    graph = torch.cuda.CUDAGraph()
    try:
        with _beside(device):
            graph.capture_begin(pool)
            try:
                work()
            finally:
                graph.capture_end()
    except RuntimeError:
        return None
    return graph


@contextmanager
def _beside(device: torch.device) -> Iterator[None]:
    """On the stream of recordings, after what has been asked for so far."""
    _side(device).wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(_side(device)):
        yield


@cache
def _side(device: torch.device) -> torch.cuda.Stream:
    """The one stream on which work is recorded: libraries keep memory for each that they see."""
    return torch.cuda.Stream(device)


def signature(model: nn.Module) -> Any:
    """What is the same as long as a recording holds: the parts of a model, and where in memory
    their tensors lie, but for the data of its problems."""
    parts = list(model.modules())
    owners = parts[1:] if isinstance(model, PerProblemModel) else parts
    tensors = [*model.parameters(), *(t for part in owners for t in part.buffers(recurse=False))]
    kinds = [(type(part), part.extra_repr()) for part in parts]
    return kinds, [(each.data_ptr(), each.shape, each.dtype) for each in tensors]


def _schedule(solver: ScheduledSolver, task: Task) -> list[tuple[tuple[float, ...], Kind]]:
    """The numbers and the kinds of the first steps."""
    return [_scheduled(solver, task, t) for t in range(min(solver.steps, _SCHEDULED))]


def _scheduled(solver: ScheduledSolver, task: Task, t: int) -> tuple[tuple[float, ...], Kind]:
    numbers = solver.numbers(t)
    return numbers, (len(numbers), solver.renews(task, t))


def _tensors(tree: Any) -> list[Tensor]:
    found: list[Tensor] = []

    def note(tensor: Tensor) -> Tensor:
        found.append(tensor)
        return tensor

    map_tensors(note, tree)
    return found


def _form(task: Task, state: Any) -> tuple[Any, list[Tensor]]:
    """What two rounds must have in common, beside their solver's operations and their model; and
    the tensors in which they may differ."""
    tensors = _tensors([task, state])
    shapes = [(tensor.shape, tensor.dtype) for tensor in tensors]
    kinds = [_without_values(task.objective), _without_values(task.space)]
    precision = task.low_precision, rounds_products(state.x)
    return (shapes, kinds, task.mates, precision), tensors


def _ways_to_write(task: Task) -> Iterator[Task]:
    """The task, and the same one in the form of those whose rows climb alternatives."""
    yield task
    alike = task.objective.as_alternative(len(task.random.keys))
    if alike is not task.objective:
        yield replace(task, objective=Guided(task.objective, alike))


def _without_values(tree: Any) -> str:
    blank: Any = None
    return repr(map_tensors(lambda tensor: blank, tree))


def _copy(into: Any, tree: Any) -> None:
    """Put the values of one tree's tensors into those of another."""
    for old, new in zip(_tensors(into), _tensors(tree), strict=True):
        if old is not new:
            old.copy_(new)
