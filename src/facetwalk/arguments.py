"""What a call of `maximize` is given: checked, and brought into one form."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from numbers import Real
from typing import Any, get_args

import torch
from torch import Tensor

from facetwalk.models import require_eval
from facetwalk.precision import Precision
from facetwalk.problem import Problem
from facetwalk.recordings import Recordings
from facetwalk.solvers import Auto, Method
from facetwalk.spaces import Space
from facetwalk.types import InputError, whole_number

_MOST_SEED = 2**62
"""There is room for the numbers of problems above it."""


def check_arguments(
    problem: Problem,
    seconds: float | None,
    precision: str | None,
    callback: Callable[..., Any] | None,
    recordings: Recordings | None,
) -> None:
    """Raise `InputError` or `ModelError` for what no call can be made of."""
    if not isinstance(problem, Problem):
        raise InputError(f"the problem must be a facetwalk.Problem; it is {problem!r}")
    if precision not in (None, *get_args(Precision)):
        raise InputError(
            f"precision must be one of {', '.join(get_args(Precision))}; it is {precision!r}"
        )
    if seconds is not None and not (isinstance(seconds, Real) and 0 < seconds < math.inf):
        raise InputError(f"seconds must be a positive number; it is {seconds!r}")
    if callback is not None and not callable(callback):
        raise InputError(f"the callback must be callable; it is {callback!r}")
    if recordings is not None and not isinstance(recordings, Recordings):
        raise InputError(f"recordings must be a facetwalk.Recordings; it is {recordings!r}")
    require_eval(problem.model)


def budget_of(solver: Method | Auto | None, evaluations: int | None) -> Method | Auto:
    """What to run, before anything is known of the problem."""
    solver = solver if solver is not None else Auto()
    if not isinstance(solver, (Method, Auto)):
        raise InputError(f"the solver must be one of facetwalk.solvers, made; it is {solver!r}")
    if evaluations is None:
        return solver
    if not isinstance(solver, Auto):
        raise InputError(
            "evaluations= is the budget of Auto, and this solver's own settings say how long "
            "it runs: leave one of them out"
        )
    return replace(solver, evaluations=evaluations)


def seeds_of(seed: int | Tensor, count: int) -> Tensor:
    """The seed of each problem, int64 `(B,)`."""
    if not isinstance(seed, Tensor):
        number = whole_number("seed", seed)
        if not -_MOST_SEED <= number <= _MOST_SEED:
            raise InputError(f"seed must lie within 2^62 of 0; it is {number}")
        return number + torch.arange(count)
    if seed.shape != (count,) or seed.is_floating_point() or seed.dtype == torch.bool:
        raise InputError(
            f"seed must be a whole number, or an integer tensor with one for each of the {count} "
            f"problems; it is {seed.dtype} of shape {tuple(seed.shape)}"
        )
    return seed.long()


def given_points(x0: Tensor | str, space: Space, count: int, starts: int) -> Tensor | None:
    """The starting points that the caller gave, `(B, 1 or starts, *shape)`."""
    if isinstance(x0, str) and x0 in ("center", "sample"):
        return None
    if not isinstance(x0, Tensor):
        raise InputError(f"x0 must be a tensor, 'center' or 'sample'; it is {x0!r}")
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
    if points.dtype == x0.dtype:
        return points
    return torch.stack([space.project(column) for column in points.unbind(1)], 1)


def thresholds_of(stop_at: float | Tensor, like: Tensor) -> Tensor:
    """One for each problem, as `like`, `(B,)`."""
    count = len(like)
    if not isinstance(stop_at, Tensor | Real) or math.isnan(torch.as_tensor(stop_at).sum().item()):
        raise InputError(
            f"stop_at must be a number, or a tensor with one for each of the {count} problems; "
            f"it is {stop_at!r}"
        )
    thresholds = torch.as_tensor(stop_at, dtype=like.dtype, device=like.device)
    if thresholds.ndim > 1 or thresholds.numel() not in (1, count):
        raise InputError(
            f"stop_at must be a number or one for each of the {count} problems; "
            f"it has shape {tuple(thresholds.shape)}"
        )
    return thresholds.expand(count)
