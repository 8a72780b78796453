"""Linear bounds of every hinge and output over one box, from the outputs back to the inputs."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from facetwalk.exact.graph import Graph
from facetwalk.exact.relaxed import Relaxed

_ROWS = 512
"""Rows that are pulled back at once."""


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


def backward_bounds(graph: Graph, low: Tensor, high: Tensor) -> Bounds:
    """Bounds over the box from `low` to `high`, each `(inputs,)`, in float64.

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
    lows, highs = [], []
    with torch.no_grad():
        for position, width in enumerate(graph.widths):
            high_of_site, minus_low = _both_ends(work, position, width)
            highs.append(high_of_site)
            lows.append(-minus_low)
            work.learn(lows[-1], highs[-1])
        outputs, _ = _both_ends(work, -1, graph.outputs)
    return Bounds(lows, highs, outputs)


def _both_ends(work: Relaxed, position: int, width: int) -> tuple[Tensor, Tensor]:
    """Upper bounds of a site, or of the output at -1, and of minus it: `(width,)` each."""
    highs, minus_lows = [], []
    for some in torch.arange(width, device=work.graph.device).split(_ROWS):
        pulled = work.graph.pull_back(position, one_hot(some, width).double())
        highs.append(work.above(pulled).bound)
        minus_lows.append(work.above(-pulled).bound)
    return torch.cat(highs), torch.cat(minus_lows)
