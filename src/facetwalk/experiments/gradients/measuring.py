"""One method on one case: its walks, every step of them, and both sides at some."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from facetwalk.experiments.experiment import Record
from facetwalk.experiments.gradients.cases import Case
from facetwalk.experiments.gradients.facets import look_at_steps
from facetwalk.experiments.gradients.one_sided import Sides, look_at_sides
from facetwalk.experiments.gradients.walks import Method, Walk, walk
from facetwalk.models import model_of
from facetwalk.objectives import as_objective
from facetwalk.problem import Problem

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
BLOCK = 5
"""Steps that share their quantiles, so that there are enough for them."""


def measure(case: Case, method: Method, looks: int) -> Record:
    """The record of a cell; both sides are looked at before so many steps, evenly spaced."""
    walked = walk(case.problem, method)
    steps = look_at_steps(case.problem.model, walked)
    count = len(steps.ratio)
    at = sorted({round(k * (count - 1) / max(looks - 1, 1)) for k in range(looks)})
    rows = range(walked.x.shape[1])
    sides = [[_sides(case.problem, method, walked, t, b) for b in rows] for t in at]
    tried = [each.holds for row in sides for each in row if each.holds is not None]
    return {
        "instances": len(rows),
        "inputs": walked.x[0, 0].numel(),
        "neurons": case.neurons,
        "solver": repr(method.solver),
        "steps": count,
        "stood_still": int(steps.ratio.isnan().sum()),
        "ratio": _quantiles(steps.ratio.flatten()),
        "block": BLOCK,
        "ratio_by_block": [_quantiles(rows.flatten()) for rows in steps.ratio.split(BLOCK)],
        "left": _means(steps.left, 0),
        "flips": _means(steps.flips, 0),
        "flips_by_step": _means(steps.flips, 1),
        "lost": _means(steps.lost, 0),
        "looked_at": at,
        "near": _per_instance(sides, lambda each: each.near),
        "missed": _per_instance(sides, lambda each: each.missed),
        "missed_any": _per_instance(sides, lambda each: each.missed > 0),
        "tried": len(tried),
        "held": sum(tried),
    }


def _sides(problem: Problem, method: Method, walked: Walk, t: int, b: int) -> Sides:
    """Both sides before the t-th step of the b-th problem."""
    row = torch.tensor([b], device=walked.x.device)
    alone = Problem(
        model_of(problem.model, row),
        as_objective(problem.objective).select(row),
        problem.space.select(row),
    )
    return look_at_sides(alone, walked.x[t, b : b + 1], partial(_step, method, alone, t))


def _step(method: Method, problem: Problem, t: int, gradient: Tensor) -> Tensor:
    return method.step(problem.space, gradient, t)


def _quantiles(values: Tensor) -> list[float | None]:
    """Of the numbers that there are; None for each if there are none.

    >>> _quantiles(torch.tensor([torch.nan, 1.0, 3.0], dtype=torch.float64))[2]
    2.0
    """
    shares = torch.tensor(QUANTILES, dtype=values.dtype, device=values.device)
    return [None if q != q else q for q in values.nanquantile(shares).tolist()]


def _means(values: Tensor, along: int) -> list[float | None]:
    """Means of the numbers that there are, along steps (0) or instances (1)."""
    return [None if mean != mean else mean for mean in values.nanmean(along).tolist()]


def _per_instance(sides: Sequence[Sequence[Sides]], what: Callable[[Sides], float]) -> list[float]:
    """Means over the points that were looked at."""
    table = torch.tensor([[float(what(each)) for each in row] for row in sides])
    return table.mean(0).tolist()
