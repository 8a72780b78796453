"""Bounds of the goals, and of the neurons on the way to them, lowered by optimised slopes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from torch import Tensor
from torch.nn.functional import one_hot

from facetwalk.exact.backward_bounds import Bounds, rows_at_once
from facetwalk.exact.graph import Graph
from facetwalk.exact.proof import Search
from facetwalk.exact.relaxed import Relaxed
from facetwalk.exact.slopes import least_bounds

_ROWS = 128
"""Neurons that are bounded at once: on a CPU their slopes should stay in the cache."""
_STEPS_OF_NEURONS, _STEPS_OF_GOALS = 6, 20
"""Neurons are many, and goals few."""
_SHARE_OF_TIME = 0.2
"""The share of the time left that either function may take."""


def tighten_goals(
    graph: Graph, low: Tensor, high: Tensor, bounds: Bounds, search: Search
) -> Bounds:
    """Lower the bounds of goals over the box from `low` to `high`, each `(inputs,)`.

    Only goals above what `search` aims for are worked on, until none is.
    """
    box = Relaxed(graph, (low + high) / 2, (high - low) / 2)
    return _with_goals(box, bounds, search, _deadline(search))


def tighten_neurons(
    graph: Graph, low: Tensor, high: Tensor, bounds: Bounds, search: Search
) -> Bounds:
    """Narrow the bounds of unstable neurons over the box from `low` to `high`, each `(inputs,)`,
    and with them those of the goals.

    The last site comes first, then the last two, and so on: the last ones have the fewest neurons
    and are worth the most. The goals follow each time, and all ends once none is above what
    `search` aims for.
    """
    deadline = _deadline(search)
    box = Relaxed(graph, (low + high) / 2, (high - low) / 2)
    sites = len(graph.widths)
    for first in reversed(range(1, sites)):
        for site in range(first, sites):
            bounds = _with_neurons(box, bounds, site, deadline)
        bounds = _with_goals(box, bounds, search, deadline)
        if search.done or time.perf_counter() > deadline:
            break
    return bounds


def _deadline(search: Search) -> float:
    return time.perf_counter() + _SHARE_OF_TIME * search.left


def _relaxed(box: Relaxed, bounds: Bounds, sites: int) -> Relaxed:
    """Lines around the hinges of the first `sites` sites."""
    relaxed = replace(box, lines=[], sizes=[])
    for low, high in zip(bounds.low[:sites], bounds.high[:sites], strict=True):
        relaxed.learn(low, high)
    return relaxed


def _with_neurons(box: Relaxed, bounds: Bounds, site: int, deadline: float) -> Bounds:
    relaxed = _relaxed(box, bounds, site)
    lows, highs = list(bounds.low), list(bounds.high)
    low, high = lows[site].clone(), highs[site].clone()
    limits = {"steps": _STEPS_OF_NEURONS, "deadline": deadline}
    for some in _lots((low < 0) & (high > 0), box.graph, deadline):
        rows = one_hot(some, len(low)).double()
        high[some] = least_bounds(relaxed, site, rows, high[some], **limits)
        low[some] = -least_bounds(relaxed, site, -rows, -low[some], **limits)
    lows[site], highs[site] = low, high
    return replace(bounds, low=lows, high=highs)


def _lots(which: Tensor, graph: Graph, deadline: float) -> Iterator[Tensor]:
    """Numbers of those that hold, some at a time, until `deadline`."""
    for some in which.nonzero().squeeze(1).split(rows_at_once(graph, _ROWS)):
        if len(some) and time.perf_counter() <= deadline:
            yield some


def _with_goals(box: Relaxed, bounds: Bounds, search: Search, deadline: float) -> Bounds:
    relaxed = _relaxed(box, bounds, len(bounds.low))
    outputs, aim = bounds.outputs.clone(), search.aim
    limits = {"steps": _STEPS_OF_GOALS, "enough": aim, "deadline": deadline}
    for some in _lots(outputs > aim, box.graph, deadline):
        rows = one_hot(some, len(outputs)).double()
        outputs[some] = least_bounds(relaxed, -1, rows, outputs[some], **limits)
    search.note(outputs.max().item(), search.nodes)
    return replace(bounds, outputs=outputs)
