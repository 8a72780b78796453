"""The call that turns a problem into a result."""

from __future__ import annotations

import time
from collections import deque
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from facetwalk.arguments import (
    budget_of,
    check_arguments,
    given_points,
    seeds_of,
    thresholds_of,
)
from facetwalk.batching import map_tensors, per_row
from facetwalk.loop import Callback, Watch, run_chunk
from facetwalk.models import model_of, untouched_random_state
from facetwalk.objectives import Custom, Objective, as_objective
from facetwalk.precision import Precision, products_in, rounds_products
from facetwalk.problem import Evaluations, Problem, Result, Trace
from facetwalk.progress import progress_report
from facetwalk.record import Record, Rows
from facetwalk.recordings import Recordings
from facetwalk.sites import Sites
from facetwalk.solvers import Auto, Method, Solver, Task
from facetwalk.spaces import Space
from facetwalk.streams import Streams
from facetwalk.trial import (
    check_scores,
    evaluations_per_second,
    first_outputs,
    has_relus,
    rows_that_fit,
)
from facetwalk.types import InputError, Status, whole_number

_TRACE_POINTS = 200
_MOST_TIMED_ROWS = 1024
"""Rows with which speed is measured."""
_PARTS = 4
"""Where memory does not suffice, one part in so many is tried."""
_HOPE = 3
"""Plan for so many times what seems affordable: the clock ends it."""
_LOOKS = 20
"""To find ReLUs and to measure speed takes about so many passes forward and back: too many where
time is short."""


@torch.inference_mode(False)
def maximize(
    problem: Problem,
    *,
    solver: Method | Auto | None = None,
    evaluations: int | None = None,
    seconds: float | None = None,
    x0: Tensor | Literal["center", "sample"] = "center",
    starts: int = 1,
    seed: int | Tensor = 0,
    batch_size: int | None = None,
    stop_at: float | Tensor | None = None,
    precision: Precision | None = None,
    callback: Callback | None = None,
    trace: bool = False,
    progress: bool = False,
    recordings: Recordings | None = None,
) -> Result:
    """Find inputs with a high objective.

    Args:
        problem: what to maximise, and where.
        solver: the method, by default `Auto()`: activation descent with recombination.
        evaluations: the budget of `Auto`: gradient evaluations of each problem, by default 1000.
        seconds: a budget in time, for all problems together; any solver stops when it is over.
        x0: the first start of each problem, `(B, *shape)`, or all, `(B, starts, *shape)`; or the
            space's `"center"`, or a random `"sample"`. Starts not given are random points, and so
            are all members of a population but the first.
        starts: runs of each problem, side by side; the best one counts.
        seed: problem b uses `seed + b`, so any problem can be run again alone; or seeds, one for
            each problem, int64 `(B,)`.
        batch_size: the most rows (problems x starts x population) to run at once; by default
            what memory holds: where it holds fewer than it seemed, these are run again in parts. A
            population is never divided.
        stop_at: a number or `(B,)`: a problem whose value reaches it leaves the batch.
        precision: of the search: `"full"`, `"tf32"`, `"bf16"`, or as torch is set. The values in
            the result are always evaluated in full precision.
        callback: sees each `Step`; returns True to stop the work.
        trace: whether to record the best value so far.
        progress: whether to show a progress bar (plain lines where there is no terminal).
        recordings: for many calls with one model, a small one on a CPU or any on a GPU: steps
            that earlier calls have recorded are replayed.

    >>> net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1)).eval()
    >>> for weight in net.parameters():
    ...     _ = weight.data.fill_(1.0)
    >>> import facetwalk as fw
    >>> problem = fw.Problem(net, fw.objectives.Output(0), fw.Box(-1, 1, shape=(2,)))
    >>> result = fw.maximize(problem, evaluations=300)
    >>> result.x.tolist(), result.value.tolist()
    ([[1.0, 1.0]], [7.0])
    """
    began = time.perf_counter()
    check_arguments(problem, seconds, precision, callback, recordings)
    starts = whole_number("starts", starts, at_least=1)
    if batch_size is not None:
        batch_size = whole_number("batch_size", batch_size, at_least=1)
    budget = budget_of(solver, evaluations)
    if isinstance(budget, Auto) and seconds is None:
        seconds = budget.seconds
    home = _Home.of(problem, seed, precision == "bf16", recordings)
    given = given_points(x0, home.space, problem.count, starts)
    watch = Watch([callback] if callback is not None else [])
    lent = nullcontext() if recordings is None else recordings.borrowed()
    with torch.no_grad(), untouched_random_state(home.device), products_in(precision), lent as own:
        alone = isinstance(budget, Solver) and problem.count * starts == 1
        home = home.as_seen(least=1 if alone else 2)
        record = _empty_record(home, given, stop_at)
        if home.low_precision or rounds_products(record.x):
            record.exactly = home.exactly
        rows, method = _trial(home, budget, seconds, stop_at is None, given is not None)
        rows = batch_size or rows
        if trace:
            record.follow(_trace_steps(method.steps))
        families = torch.arange(problem.count * starts, device=home.device)
        waiting = deque(families.split(max(1, rows // method.population)))
        with progress_report(progress, type(method).__name__) as report:
            watch.report = report if progress else None
            while waiting and not watch.cancelled:
                family = waiting.popleft()
                left = family[~record.finished[family // starts]]
                if not len(left):
                    continue
                watch.chunks = watch.chunk + 1 + len(waiting)
                watch.began = time.perf_counter()
                if seconds is not None:
                    share = (int(family[-1]) + 1) / len(families)
                    watch.deadline = began + seconds * share
                watch.first_problem = int(left[0]) // starts
                part = record.part(watch.first_problem, int(left[-1]) // starts)
                task, at_work = home.rows(method.population, left, starts, x0, given)
                if run_chunk(method, task, at_work, part, watch, own):
                    watch.chunk += 1
                    continue
                fewer = _fewer(len(left), method.population, batch_size)
                waiting = deque(torch.cat([left, *waiting]).split(fewer))
                rows = fewer * method.population
        value = _evaluate_anew(home, record.x, rows)
        record.passes[:, 0] += 1
        untried = record.initial_value == -torch.inf
        initial_value = torch.where(untried, value, record.initial_value)
        if own is not None and not home.low_precision:
            first = _evaluate_anew(home, record.initial_x, rows)
            claimed = torch.cat([record.value, record.initial_value])
            true = torch.cat([value, torch.where(untried, -torch.inf, first)])
            if not own.hold(claimed, true, rounded=record.exactly is not None):
                return maximize(
                    problem,
                    solver=solver,
                    evaluations=evaluations,
                    seconds=seconds,
                    x0=x0,
                    starts=starts,
                    seed=seed,
                    batch_size=batch_size,
                    stop_at=stop_at,
                    precision=precision,
                    callback=callback,
                    trace=trace,
                    progress=progress,
                )
    return Result(
        x=record.x,
        value=value,
        initial_value=initial_value,
        status=_statuses(value, record, watch.cancelled or watch.late),
        evaluations=Evaluations(*record.passes.cpu().unbind(1)),
        trace=_trace(record, method, watch.steps) if trace else None,
        seconds=time.perf_counter() - began,
        solver=method,
        seed=seed,
    )


def _fewer(families: int, population: int, batch_size: int | None) -> int:
    """How many families to try where so many do not fit into memory."""
    torch.cuda.empty_cache()
    if batch_size is None and families > 1:
        return -(-families // _PARTS)
    rows = families * population
    advice = f"pass a smaller batch_size, such as {max(1, rows // _PARTS)}"
    if families == 1:
        advice = "choose a solver with a smaller population, or a smaller model"
    raise InputError(f"there is not enough memory for {rows} rows at once: {advice}")


@dataclass(frozen=True)
class _Home:
    """A problem on the device and in the precision of its model."""

    model: nn.Module
    objective: Objective
    space: Space
    count: int
    seeds: Tensor
    """Of each problem, int64 `(B,)`."""
    low_precision: bool
    found: list[tuple[Sites, bool]] = field(default_factory=list)
    """The model's sites, once a task has looked for them."""
    scores: torch.dtype = torch.float32
    """That of the objective's values: a model in 16 bits may well have scores in 32."""

    @classmethod
    def of(
        cls,
        problem: Problem,
        seed: int | Tensor,
        low_precision: bool,
        recordings: Recordings | None = None,
    ) -> _Home:
        device, dtype = problem.space.center.device, problem.space.center.dtype
        for tensor in (*problem.model.parameters(), *problem.model.buffers()):
            if tensor.is_floating_point():
                device, dtype = tensor.device, tensor.dtype
                break
        objective = _for_autograd(as_objective(problem.objective)).to(device, dtype)
        space = _for_autograd(problem.space).to(device, dtype)
        seeds = seeds_of(seed, problem.count).to(device)
        found = [] if recordings is None else recordings.found_in(problem.model)
        return cls(problem.model, objective, space, problem.count, seeds, low_precision, found)

    def as_seen(self, least: int) -> _Home:
        """The same, after a first look at `least` rows or more: what does not fit is said in words,
        and the objective's numbers are of the kind that outputs are."""
        which = torch.arange(max(least, min(self.count, 2)), device=self.device) % self.count
        task = self.task(which, which)
        x = task.space.sample(task.random)
        outputs = first_outputs(task, x)
        objective = self.objective
        if isinstance(outputs, Tensor) and outputs.is_floating_point():
            objective = objective.to(self.device, outputs.dtype)
        task = replace(task, objective=objective.select(which))
        scores = check_scores(task, outputs, objective, len(x))
        return replace(self, objective=objective, scores=scores.dtype)

    @property
    def device(self) -> torch.device:
        return self.space.center.device

    def task(self, which: Tensor, number: Tensor, mates: int = 1) -> Task:
        """The task of rows that belong to problems `which`, `(N,)`, numbered within each."""
        return Task(
            model=model_of(self.model, which),
            objective=self.objective.select(which),
            space=self.space.select(which),
            random=Streams.from_seeds(self.seeds[which], number),
            mates=mates,
            low_precision=self.low_precision,
            found=self.found,
        )

    def exactly(self, which: Tensor, x: Tensor) -> Tensor:
        """The objective of problems `which`, `(N,)`, at points `x`, in full precision."""
        with products_in("full"):
            return self.objective.select(which)(model_of(self.model, which)(x.clone()))

    def rows(
        self, population: int, family: Tensor, starts: int, x0: Any, given: Tensor | None
    ) -> tuple[Task, Rows]:
        """The rows of some families, each a start of a problem: all members one by one."""
        family = family.repeat_interleave(population)
        which, start = family // starts, family % starts
        member = torch.arange(len(family), device=self.device) % population
        number = start * population + member
        task = self.task(which, number, population)
        x = task.space.sample(task.random.fold(0))
        if not isinstance(x0, str) or x0 == "center":
            chosen, points = number == 0, task.space.center
            if given is not None:
                every = given.shape[1] > 1
                points = given[which, start if every else 0]
                chosen = member == 0 if every else chosen
            x = torch.where(per_row(chosen, x), points, x)
        best = x.new_full((len(x),), -torch.inf, dtype=self.scores)
        return task, Rows(which - which[0], number, family, x, best)


def _for_autograd(tree: Any) -> Any:
    """The same; tensors of inference mode, which no gradient passes, are copied."""
    if isinstance(tree, Custom):
        return tree
    return map_tensors(lambda t: t.clone() if t.is_inference() else t, tree)


def _trial(
    home: _Home,
    budget: Method | Auto,
    seconds: float | None,
    to_the_last_digit: bool,
    start_is_given: bool,
) -> tuple[int, Method]:
    """How many rows a batch may have, and the method; says in words what does not fit."""
    everyone = torch.arange(home.count, device=home.device)
    few = home.task(everyone[:2], everyone[:2])
    x = few.space.sample(few.random)
    looked = time.perf_counter()
    rows = rows_that_fit(few, x)
    if not isinstance(budget, Auto):
        return rows, budget
    passes_take = time.perf_counter() - looked
    hurried = seconds is not None and _LOOKS * passes_take > seconds
    relus, inputs = not hurried and has_relus(few, x), x[0].numel()

    def plan(budget: Auto) -> Method:
        alternatives = home.objective.has_alternatives
        shares_room = few.space.shares_room
        return budget.plan(
            relus, to_the_last_digit, inputs, start_is_given, alternatives, shares_room
        )

    method = plan(budget)
    if seconds is None or budget.evaluations is not None:
        return rows, method
    if hurried:
        affordable = int(seconds / passes_take * len(x) / home.count)
        return rows, plan(replace(budget, evaluations=max(1, affordable)))
    for _ in range(2):  # the more members, the cheaper is each
        which = everyone.repeat_interleave(method.population)[: min(rows, _MOST_TIMED_ROWS)]
        timed = home.task(which, which)
        rate = evaluations_per_second(timed, timed.space.sample(timed.random))
        affordable = max(1, int(_HOPE * seconds * rate / home.count))
        method = plan(replace(budget, evaluations=affordable))
    return rows, method


def _empty_record(home: _Home, given: Tensor | None, stop_at: float | Tensor | None) -> Record:
    count, center = home.count, home.space.center
    first = center if given is None else given[:, 0]
    lowest = center.new_full((count,), -torch.inf, dtype=home.scores)
    thresholds = None if stop_at is None else thresholds_of(stop_at, lowest)
    return Record(
        x=first.expand(count, *home.space.shape).clone(),
        initial_x=first.expand(count, *home.space.shape).clone(),
        value=lowest,
        initial_value=lowest.clone(),
        passes=torch.zeros(count, 3, dtype=torch.int64, device=center.device),
        trace=lowest[:, None][:, :0],
        stop_at=thresholds,
        finished=torch.zeros_like(lowest, dtype=torch.bool),
        confirmed=torch.zeros_like(lowest, dtype=torch.bool),
        passes_at_finish=torch.zeros(count, 3, dtype=torch.int64, device=center.device),
    )


def _evaluate_anew(home: _Home, x: Tensor, batch_size: int) -> Tensor:
    """The objective at a point of each problem."""
    problems = torch.arange(len(x), device=x.device)
    return torch.cat([home.exactly(part, x[part]) for part in problems.split(batch_size)])


def _statuses(value: Tensor, record: Record, stopped: bool) -> tuple[Status, ...]:
    otherwise = Status.STOPPED if stopped else Status.FINISHED
    if record.stop_at is None:
        return (otherwise,) * len(value)
    reached = (value >= record.stop_at).tolist()
    return tuple(Status.REACHED if r else otherwise for r in reached)


def _trace_steps(steps: int) -> Tensor:
    return torch.linspace(0, steps - 1, min(steps, _TRACE_POINTS)).round().long()


def _trace(record: Record, method: Method, taken: int) -> Trace:
    """What was recorded of the steps that were taken."""
    steps = torch.tensor(record.trace_steps, dtype=torch.int64)
    made = steps < taken
    gradients = [solver.gradients_per_step for solver in method.rounds for _ in range(solver.steps)]
    evaluations = method.population * torch.tensor(gradients).cumsum(0)
    best = record.trace.cummax(1).values[:, made.to(record.trace.device)]
    best[:, -1] = torch.maximum(best[:, -1], record.value)  # the last steps need not be recorded
    return Trace(evaluations[steps[made]], best)
