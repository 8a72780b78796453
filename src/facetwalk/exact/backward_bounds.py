"""Linear bounds of every hinge and output over one box, from the outputs back to the inputs."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from facetwalk.exact.graph import Graph, Pullback
from facetwalk.exact.relaxation import Relaxation, relax

_ROWS = 512
"""Rows that are pulled back at once."""
_ROUNDING = 1e-11
"""Slack for rounding, as a share of the sum of the absolute values of all terms of a bound: a
hundred thousand times the unit of float64."""


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


@dataclass(frozen=True)
class _Backward:
    """Bounds over one box, site by site: each uses those of the sites before it."""

    graph: Graph
    center: Tensor
    radius: Tensor
    lines: list[Relaxation] = field(default_factory=list)
    sizes: list[Tensor] = field(default_factory=list)
    """Of each site so far, how large a pre-activation may be."""

    def upper(self, position: int, width: int) -> tuple[Tensor, Tensor]:
        """Upper bounds of a site, or of the output at -1, and of minus it: `(width,)` each."""
        eye = torch.eye(width, dtype=torch.float64, device=self.graph.device)
        pulled = [self.graph.pull_back(position, rows) for rows in eye.split(_ROWS)]
        high = torch.cat([self._upper(rows) for rows in pulled])
        return high, torch.cat([self._upper(-rows) for rows in pulled])

    def _upper(self, pulled: Pullback) -> Tensor:
        on_input, constant, hidden = pulled.input, pulled.constant, list(pulled.hidden)
        terms = constant.abs()
        for site in reversed(range(len(self.lines))):
            weight = hidden[site]
            if weight is None or not bool(weight.any()):
                continue
            line, rising, falling = self.lines[site], weight.clamp(min=0), weight.clamp(max=0)
            constant = constant + rising @ line.offset
            terms = terms + weight.abs() @ self.sizes[site]
            pulled = self.graph.pull_back(site, rising * line.upper + falling * line.lower)
            on_input, constant = on_input + pulled.input, constant + pulled.constant
            terms = terms + pulled.constant.abs()
            for earlier, more in enumerate(pulled.hidden):
                before = hidden[earlier]
                if more is not None:
                    hidden[earlier] = more if before is None else before + more
        terms = terms + on_input.abs() @ (self.center.abs() + self.radius)
        bound = constant + on_input @ self.center + on_input.abs() @ self.radius
        return bound + _ROUNDING * terms

    def learn(self, low: Tensor, high: Tensor) -> None:
        """Take bounds on the next site."""
        self.lines.append(relax(low, high))
        self.sizes.append(torch.maximum(low.abs(), high.abs()))


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
    work = _Backward(graph, (low + high) / 2, (high - low) / 2)
    lows, highs = [], []
    with torch.no_grad():
        for position, width in enumerate(graph.widths):
            high_of_site, minus_low = work.upper(position, width)
            highs.append(high_of_site)
            lows.append(-minus_low)
            work.learn(lows[-1], highs[-1])
        outputs, _ = work.upper(-1, graph.outputs)
    return Bounds(lows, highs, outputs)
