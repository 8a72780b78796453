"""Problem, Result, and the call that turns one into the other."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from facetwalk.loop import Callback, Record, Rows, Step, run_chunk
from facetwalk.models import count_of, model_of, require_eval
from facetwalk.objectives import Custom, Objective, as_objective
from facetwalk.progress import progress_report
from facetwalk.solvers import Sign, Solver, Task
from facetwalk.spaces import Space
from facetwalk.streams import Streams
from facetwalk.types import InputError, ModelError, Status

_TRACE_POINTS = 200


@dataclass(frozen=True)
class Problem:
    """Maximise `objective(model(x))` over `x` in `space`.

    The model takes `(B, *shape)` and is never changed. The objective is a
    `facetwalk.objectives.Objective` or any callable from outputs to scores `(B,)`. A space, an
    objective or a model with data for several problems makes a batch of problems.
    """

    model: nn.Module
    objective: Objective | Callable[[Any], Tensor]
    space: Space

    def __post_init__(self) -> None:
        if not isinstance(self.model, nn.Module):
            raise InputError(
                f"the model must be a torch.nn.Module; it is a {type(self.model).__name__}"
            )
        if not isinstance(self.space, Space):
            raise InputError(
                "the space must be a Box, a ball or another facetwalk.spaces.Space; "
                f"it is a {type(self.space).__name__}"
            )
        space, objective, model = self._counts()
        if len({space, objective, model} - {1}) > 1:
            raise InputError(
                f"the space describes {space} problems, the objective {objective} and the model "
                f"{model}: give each the same number, or one for all"
            )

    def _counts(self) -> tuple[int, int, int]:
        return self.space.count, as_objective(self.objective).count, count_of(self.model)

    @property
    def count(self) -> int:
        """How many problems this is."""
        return max(self._counts())


@dataclass(frozen=True)
class Evaluations:
    """Passes through the network that each problem took, over all its starts: int64 `(B,)`."""

    forward: Tensor
    backward: Tensor
    probe: Tensor
    """Forward-mode passes, which measure hyperplane normals."""


@dataclass(frozen=True)
class Trace:
    """The best value so far against the gradient evaluations of each start."""

    evaluations: Tensor
    """int64 `(G,)`."""
    best: Tensor
    """`(B, G)`: the best over all starts."""


@dataclass(frozen=True)
class Result:
    """What `maximize` found. Tensors have one row a problem."""

    x: Tensor
    """The best point found, inside the space."""
    value: Tensor
    """The objective at `x`, evaluated anew."""
    initial_value: Tensor
    """The objective at the first start."""
    status: tuple[Status, ...]
    evaluations: Evaluations
    trace: Trace | None
    seconds: float
    solver: Solver
    seed: int


def maximize(
    problem: Problem,
    *,
    solver: Solver | None = None,
    x0: Tensor | Literal["center", "sample"] = "center",
    starts: int = 1,
    seed: int = 0,
    batch_size: int | None = None,
    stop_at: float | Tensor | None = None,
    callback: Callback | None = None,
    trace: bool = False,
    progress: bool = False,
) -> Result:
    """Find inputs with a high objective.

    Args:
        problem: what to maximise, and where.
        solver: the method, by default `Sign()`.
        x0: the first start of each problem, `(B, *shape)`, or all, `(B, starts, *shape)`; or the
            space's `"center"`, or a random `"sample"`. Starts not given are random points.
        starts: runs of each problem, side by side; the best one counts.
        seed: problem b uses `seed + b`, so any problem can be run again alone.
        batch_size: the most rows (problems x starts) to run at once; bounds memory.
        stop_at: a number or `(B,)`: a problem whose value reaches it leaves the batch.
        callback: sees each `Step`; returns True to stop the work.
        trace: whether to record the best value so far.
        progress: whether to show a progress bar (plain lines where there is no terminal).

    >>> net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1)).eval()
    >>> for weight in net.parameters():
    ...     _ = weight.data.fill_(1.0)
    >>> import facetwalk as fw
    >>> problem = fw.Problem(net, fw.objectives.Output(0), fw.Box(-1, 1, shape=(2,)))
    >>> result = fw.maximize(problem, starts=3)
    >>> result.x.tolist(), result.value.tolist()
    ([[1.0, 1.0]], [7.0])
    """
    began = time.perf_counter()
    solver = solver if solver is not None else Sign()
    _check_arguments(problem, starts, batch_size)
    device, dtype = _home(problem)
    space = problem.space.to(device, dtype)
    objective = as_objective(problem.objective).to(device, dtype)
    given = _given_points(x0, space, problem.count, starts)
    record = _empty_record(problem.count, space, solver, stop_at, trace)
    rows = torch.arange(problem.count * starts, device=device)
    chunks = rows.split(batch_size or len(rows))
    with (
        torch.no_grad(),
        torch.random.fork_rng(devices=[device] if device.type == "cuda" else []),
        progress_report(progress, type(solver).__name__) as report,
    ):
        callbacks = [callback] if callback is not None else []
        callbacks.append(lambda step: _report(report, step))
        for number, chunk in enumerate(chunks):
            chunk = chunk[~record.reached(chunk // starts)]
            if not len(chunk) or record.stopped:
                continue
            which, start = chunk // starts, chunk % starts
            task = Task(
                model=model_of(problem.model, which),
                objective=objective.select(which),
                space=space.select(which),
                random=Streams.from_seeds(seed + which, start),
            )
            x = _starting_points(task, given, which, start, x0 == "sample")
            if number == 0:
                _check_outputs(task, x)
            best = torch.full((len(x),), -torch.inf, dtype=dtype, device=device)
            at_work = Rows(which, start, x, best)
            run_chunk(solver, task, at_work, record, callbacks, (number, len(chunks)))
        value = _evaluate_anew(problem.model, objective, record, batch_size)
    return Result(
        x=record.x,
        value=value,
        initial_value=record.initial_value,
        status=_statuses(value, record),
        evaluations=Evaluations(*record.passes.unbind(1)),
        trace=_trace(record, solver) if trace else None,
        seconds=time.perf_counter() - began,
        solver=solver,
        seed=seed,
    )


def _check_arguments(problem: Problem, starts: int, batch_size: int | None) -> None:
    if starts < 1:
        raise InputError(f"starts must be at least 1; it is {starts}")
    if batch_size is not None and batch_size < 1:
        raise InputError(f"batch_size must be at least 1; it is {batch_size}")
    require_eval(problem.model)


def _home(problem: Problem) -> tuple[torch.device, torch.dtype]:
    """Where the model lives and computes; a model without weights follows the space."""
    for tensor in (*problem.model.parameters(), *problem.model.buffers()):
        if tensor.is_floating_point():
            return tensor.device, tensor.dtype
    return problem.space.center.device, problem.space.center.dtype


def _given_points(x0: Tensor | str, space: Space, count: int, starts: int) -> Tensor | None:
    """The starting points that the caller gave, `(B, 1 or starts, *shape)`."""
    if isinstance(x0, str):
        if x0 not in ("center", "sample"):
            raise InputError(f"x0 must be a tensor, 'center' or 'sample'; it is {x0!r}")
        return None
    one, every = (count, *space.shape), (count, starts, *space.shape)
    if tuple(x0.shape) not in (one, every):
        raise InputError(
            f"x0 has shape {tuple(x0.shape)}: pass {one} for the first start of each problem, "
            f"or {every} for all starts"
        )
    if not bool(torch.isfinite(x0).all()):
        raise InputError("x0 holds NaN or infinite values")
    points = x0.detach().to(space.center.device, space.center.dtype)
    points = points[:, None] if tuple(x0.shape) == one else points
    inside = torch.stack([space.contains(column) for column in points.unbind(1)])
    if not bool(inside.all()):
        raise InputError(
            f"{int((~inside).sum())} of {inside.numel()} starting points lie outside the space: "
            "project them with space.project(x0), or widen the space"
        )
    return points


def _empty_record(
    count: int, space: Space, solver: Solver, stop_at: float | Tensor | None, trace: bool
) -> Record:
    center = space.center
    lowest = torch.full((count,), -torch.inf, dtype=center.dtype, device=center.device)
    thresholds = None
    if stop_at is not None:
        thresholds = torch.as_tensor(stop_at, dtype=center.dtype, device=center.device)
        if thresholds.ndim > 1 or thresholds.numel() not in (1, count):
            raise InputError(
                f"stop_at must be a number or one for each of the {count} problems; "
                f"it has shape {tuple(thresholds.shape)}"
            )
        thresholds = thresholds.expand(count)
    points = min(solver.steps, _TRACE_POINTS) if trace else 0
    steps = torch.linspace(0, solver.steps - 1, points).round().long().tolist()
    return Record(
        x=center.expand(count, *space.shape).clone(),
        value=lowest,
        initial_value=lowest.clone(),
        passes=torch.zeros(count, 3, dtype=torch.int64),
        trace_steps=steps,
        trace=lowest[:, None].repeat(1, points),
        stop_at=thresholds,
    )


def _starting_points(
    task: Task, given: Tensor | None, which: Tensor, start: Tensor, all_random: bool
) -> Tensor:
    """The first point of each row, `(N, *shape)`."""
    x = task.space.sample(task.random.fold(0))
    if all_random:
        return x
    if given is None:
        first = task.space.center.expand_as(x)
    elif given.shape[1] > 1:
        return given[which, start]
    else:
        first = given[which, 0]
    return torch.where((start == 0).reshape(-1, *[1] * (x.ndim - 1)), first, x)


def _check_outputs(task: Task, x: Tensor) -> None:
    """Run two rows through model and objective, so that what does not fit is said in words."""
    few = task.select(torch.arange(min(2, len(x)), device=x.device))
    x = x[: len(few.random.keys)]
    try:
        with torch.no_grad():
            outputs = few.model(x.clone())
    except Exception as error:
        raise ModelError(
            f"the model fails on an input of shape {tuple(x.shape)} and type {x.dtype}: {error}"
        ) from error
    if not isinstance(few.objective, Custom):
        if not isinstance(outputs, Tensor) or len(outputs) != len(x):
            raise ModelError(
                f"the model must return a tensor with a row for each input; for {len(x)} inputs it "
                f"returned {_describe(outputs)}"
            )
        few.objective.check(outputs)
        task.objective.check(outputs)
    scores = few.objective(outputs)
    if not isinstance(scores, Tensor) or scores.shape != (len(x),):
        raise InputError(
            f"the objective must return one score for each input, shape ({len(x)},); "
            f"it returned {_describe(scores)}"
        )
    if bool(torch.isnan(scores).any()):
        raise ModelError("the objective is NaN at the start: check the weights and the inputs")


def _describe(value: object) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    return f"a {type(value).__name__}"


def _report(report: Callable[[float, str], None], step: Step) -> None:
    share = (step.chunk + step.step / step.steps) / step.chunks
    report(share, f"step {step.step} of {step.steps}, {len(step.value)} rows")


def _evaluate_anew(
    model: nn.Module, objective: Objective, record: Record, batch_size: int | None
) -> Tensor:
    problems = torch.arange(len(record.x), device=record.x.device)
    values = []
    for part in problems.split(batch_size or len(problems)):
        with torch.no_grad():
            outputs = model_of(model, part)(record.x[part].clone())
            values.append(objective.select(part)(outputs))
    record.passes[:, 0] += 1
    return torch.cat(values)


def _statuses(value: Tensor, record: Record) -> tuple[Status, ...]:
    otherwise = Status.STOPPED if record.stopped else Status.FINISHED
    if record.stop_at is None:
        return (otherwise,) * len(value)
    reached = (value >= record.stop_at).tolist()
    return tuple(Status.REACHED if r else otherwise for r in reached)


def _trace(record: Record, solver: Solver) -> Trace:
    steps = torch.tensor(record.trace_steps, dtype=torch.int64)
    return Trace(solver.gradients_per_step * (steps + 1), record.trace.cummax(1).values)
