"""Linear bounds of every hinge and output over one box, from the outputs back to the inputs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from facetwalk.exact.graph import Graph
from facetwalk.exact.intervals import interval_bounds
from facetwalk.exact.relaxed import Relaxed

_ROWS = 512
"""Rows that are pulled back at once."""
_NUMBERS_AT_ONCE = {"cpu": 2**20, "cuda": 2**26}
"""Entries of their largest tensor: fewer rows of a wide network, and the clock is seen often."""
_SHARE_OF_TIME = 0.4
"""The share of the time left that neurons may take: goals come after them, and a first point."""


@dataclass(frozen=True)
class Bounds:
    """Bounds `(width,)` on each site's pre-activation, and on the outputs, over a box."""

    low: list[Tensor]
    high: list[Tensor]
    outputs: Tensor
    """Upper bounds, `(outputs,)`."""

    @property
    def unstable(self) -> int:
        """How many neurons may be on or off."""
        pairs = zip(self.low, self.high, strict=True)
        return sum(int(((low < 0) & (high > 0)).sum()) for low, high in pairs)


def rows_at_once(graph: Graph, most: int = _ROWS) -> int:
    """How many functions of a site are pulled back through a network together."""
    widest = max(math.prod(graph.shape), *graph.widths, 1)
    return max(1, min(most, _NUMBERS_AT_ONCE[graph.device.type] // widest))


def backward_bounds(
    graph: Graph,
    low: Tensor,
    high: Tensor,
    *,
    deadline: float = math.inf,
    say: Callable[[str], None] = lambda _: None,
) -> Bounds:
    """Bounds over the box from `low` to `high`, each `(inputs,)`, in float64.

    Intervals come first. Neurons that may be on or off by them are bounded backward, and so are
    the outputs; what is not by `deadline`, on the clock of `time.perf_counter`, keeps its
    interval. `say` is told how far the work has come.

    >>> from torch import nn
    >>> net = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1)).eval()
    >>> _ = net[0].weight.data.fill_(1), net[0].bias.data.zero_()
    >>> _ = net[2].weight.data.fill_(1), net[2].bias.data.zero_()
    >>> one = torch.ones(1, dtype=torch.float64)
    >>> bounds = backward_bounds(Graph.of(net, (1,)), -one, one)
    >>> round(bounds.outputs.item(), 6), bounds.unstable
    (2.0, 2)
    """
    work = Relaxed(graph, (low + high) / 2, (high - low) / 2)
    known: list[tuple[Tensor, Tensor]] = []
    now = time.perf_counter()
    soon = now + _SHARE_OF_TIME * (deadline - now)
    sites = len(graph.widths)
    with torch.no_grad():
        for site in range(sites):
            below, above = interval_bounds(graph, low, high, known, site)
            unstable = (below < 0) & (above > 0)
            for some in _in_time(graph, unstable, above, soon):
                say(f"site {site + 1} of {sites}, neuron {int(some[0]) + 1:,} of {len(above):,}")
                highest, minus_lowest = _both_ends(work, site, one_hot(some, len(above)).double())
                above[some] = torch.minimum(above[some], highest)
                below[some] = torch.maximum(below[some], -minus_lowest)
            known.append((below, above))
            work.learn(below, above)
        _, outputs = interval_bounds(graph, low, high, known, -1)
        every = torch.ones_like(outputs, dtype=torch.bool)
        for some in _in_time(graph, every, outputs, deadline):
            say(f"goal {int(some[0]) + 1:,} of {len(outputs):,}")
            pulled = graph.pull_back(-1, one_hot(some, len(outputs)).double())
            outputs[some] = torch.minimum(outputs[some], work.above(pulled).bound)
    lows, highs = ([pair[end] for pair in known] for end in (0, 1))
    return Bounds(lows, highs, outputs)


def _in_time(graph: Graph, which: Tensor, bounds: Tensor, deadline: float) -> Iterator[Tensor]:
    """Numbers of those, some at a time, until `deadline`; without an end if one has no bound."""
    bounded = bool(bounds.isfinite().all())
    for some in which.nonzero().squeeze(1).split(rows_at_once(graph)):
        if len(some) and not (bounded and time.perf_counter() > deadline):
            yield some


def _both_ends(work: Relaxed, position: int, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Upper bounds of functions of a site, and of minus these: `(R,)` each."""
    pulled = work.graph.pull_back(position, rows)
    return work.above(pulled).bound, work.above(-pulled).bound
