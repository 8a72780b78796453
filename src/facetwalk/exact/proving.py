"""The call that finds a maximum and proves it."""

from __future__ import annotations

import math
import time
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from facetwalk.arguments import given_points
from facetwalk.exact.arguments import number, positive
from facetwalk.exact.backward_bounds import Bounds, backward_bounds
from facetwalk.exact.boxes import search_boxes
from facetwalk.exact.dense import Dense
from facetwalk.exact.first_look import first_look
from facetwalk.exact.live_line import live_line
from facetwalk.exact.milp import fits, require_highs, search_milp
from facetwalk.exact.proof import Proof, Search
from facetwalk.exact.rounding import check_finite
from facetwalk.exact.tightening import tighten_goals, tighten_neurons
from facetwalk.maximize import maximize as climb
from facetwalk.objectives import as_objective
from facetwalk.problem import Problem
from facetwalk.spaces import Box, LinfBall, Space
from facetwalk.types import InputError, whole_number

Engine = Literal["auto", "boxes", "milp"]

_EVALUATIONS = 10_000
"""Gradients that the first search for a good point may take."""
_SHARE_OF_TIME = 0.2
"""The share of the time that it may take."""
_LEAST_SECONDS = 0.01
_MOST_INPUTS = 16
"""With more inputs than this, halving boxes leads nowhere."""
_FEW_NEURONS = 24
"""With so few unstable neurons, a mixed-integer program is solved at once, and either engine finds
good points by itself."""


@torch.inference_mode(False)
def maximize(
    network: nn.Module,
    space: Space,
    objective: Any,
    *,
    time_limit: float | None = 60.0,
    gap: float = 1e-2,
    engine: Engine = "auto",
    threshold: float | None = None,
    x0: Tensor | None = None,
    seed: int = 0,
    progress: bool = False,
) -> Proof:
    """The maximum of an objective over a box, with a bound that no point of it exceeds.

    Args:
        network: a piecewise-linear network in eval mode, taken in float64: linear layers,
            convolutions, batch norm, average pooling and sums between ReLUs and their kin.
        space: a `Box` or an `LinfBall` with one problem.
        objective: `Output`, `Margin`, `TargetedMargin` or `Linear` of `facetwalk.objectives`.
        time_limit: seconds, after which the bound is what it is; None sets no limit. What is not
            bounded by then has bounds by intervals, and nothing new is begun.
        gap: how far the bound may be above the value, absolutely, for a proof.
        engine: `"boxes"` halves the input box, `"milp"` solves a mixed-integer program. `"auto"`
            takes boxes for up to 16 inputs, unless at most 24 neurons are unstable (may be on or
            off in the space), and the program otherwise.
        threshold: ends the search once it is known whether the maximum lies above this number.
        x0: a point that is known already, `(1, *shape)`, such as `result.x`; the value is at
            least the one there.
        seed: of the first search, by `facetwalk.maximize`.
        progress: whether to show value and bound as they change.

    >>> net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1)).eval()
    >>> for weight in net.parameters():
    ...     _ = weight.data.fill_(1.0)
    >>> from facetwalk.objectives import Output
    >>> proof = maximize(net, Box(-1, 1, shape=(2,)), Output(0), engine="boxes")
    >>> proof.x.tolist(), proof.value, proof.proven
    ([1.0, 1.0], 7.0, True)
    """
    began = time.perf_counter()
    _check_space(space)
    _check_engine(engine)
    seconds = math.inf if time_limit is None else positive("time_limit", time_limit)
    gap = positive("gap", gap)
    threshold = None if threshold is None else number("threshold", threshold)
    seed = whole_number("seed", seed)
    goals, graph = first_look(network, space, objective)
    exact = space.to(graph.device, torch.float64)
    low, high = _ends(exact)
    known = None if x0 is None else given_points(x0, exact, 1, 1)
    with live_line(progress, began, seconds) as report:
        search = Search(
            x=(low + high) / 2,
            value=-torch.inf,
            bound=torch.inf,
            gap=gap,
            threshold=threshold,
            evaluate=lambda points: goals.best(points.view(-1, *graph.shape)),
            began=began,
            deadline=began + seconds,
            report=report,
        )
        search.offer(search.x[None])
        if known is not None:
            search.offer(known.flatten()[None])
        bounds = backward_bounds(graph, low, high, deadline=search.deadline, say=search.say)
        check_finite((*bounds.low, *bounds.high, bounds.outputs))
        search.note(bounds.outputs.max().item(), 0)
        chosen = _choose(engine, len(low), bounds)
        if not search.done and chosen == "milp":
            require_highs()
        many = bounds.unstable > _FEW_NEURONS
        if not search.over and many and chosen == "milp":
            bounds = tighten_goals(graph, low, high, bounds, search)
        if not search.done and many:
            x = _first_point(goals.network, exact, objective, search, seed)
            search.offer(torch.minimum(torch.maximum(x, low), high)[None])
        search.note(search.bound, 0)
        if not search.over and many and chosen == "milp":
            bounds = tighten_neurons(graph, low, high, bounds, search)
        work = not search.over and (chosen == "boxes" or fits(len(low), bounds))
        dense = Dense.of(graph, deadline=search.deadline) if work else None
        if dense is not None and chosen == "boxes":
            search_boxes(dense, low, high, search)
        elif dense is not None:
            search_milp(dense, low, high, bounds, search)
    seconds = time.perf_counter() - began
    bound = max(search.bound, search.value)
    return Proof(
        x=search.x.view(graph.shape),
        value=search.value,
        bound=bound,
        proven=bound - search.value <= gap,
        engine=chosen,
        nodes=search.nodes,
        seconds=seconds,
        trace=(*search.trace, (seconds, search.value, bound)),
    )


def _check_space(space: Space) -> None:
    if not isinstance(space, (Box, LinfBall)):
        raise InputError(
            f"a maximum is proven over a Box or an LinfBall; the space is a {type(space).__name__}"
        )
    if space.count != 1:
        raise InputError(
            f"a proof is about one problem, and the space describes {space.count}: "
            "pick one with space.select"
        )


def _check_engine(engine: str) -> None:
    if engine not in get_args(Engine):
        raise InputError(f"engine must be one of {', '.join(get_args(Engine))}; it is {engine!r}")


def _ends(space: Space) -> tuple[Tensor, Tensor]:
    """The lowest and the highest value of every entry, `(inputs,)`."""
    infinity = torch.full_like(space.center, torch.inf)
    return space.project(-infinity).flatten(), space.project(infinity).flatten()


def _first_point(
    network: nn.Module, space: Space, objective: Any, search: Search, seed: int
) -> Tensor:
    problem = Problem(network, as_objective(objective), space)
    seconds = max(_SHARE_OF_TIME * search.left, _LEAST_SECONDS)
    result = climb(
        problem,
        evaluations=_EVALUATIONS,
        seconds=seconds if math.isfinite(seconds) else None,
        stop_at=None if search.threshold is None else math.nextafter(search.threshold, math.inf),
        seed=seed,
    )
    return result.x.flatten()


def _choose(engine: Engine, inputs: int, bounds: Bounds) -> str:
    if engine != "auto":
        return engine
    if inputs <= _MOST_INPUTS and bounds.unstable > _FEW_NEURONS:
        return "boxes"
    return "milp"
