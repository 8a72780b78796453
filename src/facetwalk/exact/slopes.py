"""Slopes of the lines below the hinges, chosen by gradient for the lowest bound.

Any slope from 0 to 1 gives a bound that holds, so nothing depends on how well they are chosen.
Known as alpha-CROWN (Xu et al., 2021).
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from facetwalk.exact.relaxation import Relaxation
from facetwalk.exact.relaxed import Above, Relaxed

_STEP, _DECAY = 0.3, 0.9
"""The first step of a slope, and what becomes of it from one to the next."""
_MEAN, _SQUARE = 0.5, 0.9
"""Adam's memory of gradients and of their squares: short, for there are few steps."""
_TINY = 1e-30


def least_bounds(
    relaxed: Relaxed,
    position: int,
    rows: Tensor,
    known: Tensor,
    *,
    steps: int,
    enough: float = -math.inf,
    deadline: float = math.inf,
) -> Tensor:
    """Upper bounds `(R,)` of functions of a site's pre-activation, or of the output at -1.

    Args:
        relaxed: lines around the hinges of all sites before.
        position: the site's number, or -1.
        rows: the functions, `(R, width)`. Each gets slopes of its own.
        known: upper bounds that hold already, `(R,)`; no bound comes out above its own.
        steps: how often slopes are tried.
        enough: ends the work as soon as no bound is larger.
        deadline: ends it too, on the clock of `time.perf_counter`.

    >>> from torch import nn
    >>> from facetwalk.exact.graph import Graph
    >>> net = nn.Sequential(nn.Linear(1, 1), nn.ReLU(), nn.Linear(1, 1)).eval()
    >>> for parameter, value in zip(net.parameters(), (1.0, 0.1, -1.0, 0.0)):
    ...     _ = parameter.data.fill_(value)
    >>> one = torch.ones(1, dtype=torch.float64)
    >>> relaxed = Relaxed(Graph.of(net, (1,)), 0 * one, one)
    >>> relaxed.learn(-0.9 * one, 1.1 * one)
    >>> plain = relaxed.above(relaxed.graph.pull_back(-1, one[None])).bound
    >>> best = least_bounds(relaxed, -1, one[None], plain, steps=20)
    >>> f"{plain.item():.3f} {abs(best.item()):.3f}"  # -max(x + 0.1, 0) is never above 0
    '0.900 0.000'
    """
    with torch.no_grad():
        pulled, best = relaxed.graph.pull_back(position, rows), known
        slopes = [_Slopes.of(line, len(rows)) for line in relaxed.lines]
        for _ in range(steps):
            if time.perf_counter() > deadline or bool((best <= enough).all()):
                break
            tried = replace(relaxed, lines=[own.line for own in slopes])
            above = tried.above(pulled)
            best = torch.minimum(best, above.bound)
            for own, gradient in zip(slopes, slope_gradients(tried, position, above), strict=True):
                own.descend(gradient)
    return best


def slope_gradients(relaxed: Relaxed, position: int, above: Above) -> list[Tensor]:
    """The derivatives of each row's bound by the lower slopes of each site, `(R, width)`.

    A bound is the value of its row at its corner with every hinge on the line that its weight
    chose. So the derivative by a slope is the neuron's pre-activation there times its weight, if
    that is negative, and 0 otherwise.

    >>> from torch import nn
    >>> from facetwalk.exact.graph import Graph
    >>> net = nn.Sequential(nn.ReLU(), nn.Linear(1, 1)).eval()
    >>> _ = net[1].weight.data.fill_(-2.0), net[1].bias.data.fill_(0.0)
    >>> one = torch.ones(1, dtype=torch.float64)
    >>> relaxed = Relaxed(Graph.of(net, (1,)), 0 * one, one)
    >>> relaxed.learn(-one, 0.9 * one)
    >>> relaxed.lines[0].lower.fill_(0.25).item()  # -2 max(x, 0) <= -0.5 x <= 0.5
    0.25
    >>> slope_gradients(relaxed, -1, relaxed.above(relaxed.graph.pull_back(-1, one[None])))
    [tensor([[2.]], dtype=torch.float64)]
    """

    def on_the_line(site: int, z: Tensor) -> Tensor:
        weight, line = above.weights[site], relaxed.lines[site]
        if weight is None:
            return torch.zeros_like(z)
        return torch.where(weight > 0, line.upper * z + line.offset, line.lower * z)

    corners = above.corner.view(-1, *relaxed.graph.shape)
    seen = relaxed.graph.maps(corners, on_the_line, position)[:-1]
    return [
        torch.zeros_like(z) if weight is None else weight.clamp(max=0) * z
        for weight, z in zip(above.weights[: len(seen)], seen, strict=True)
    ]


@dataclass
class _Slopes:
    """The lower slopes of one site for each row, and how Adam moves them."""

    line: Relaxation
    """Its `lower` is `(R, width)`."""
    free: Tensor
    """The neurons that may be on or off; the slopes of all others are what they are."""
    mean: Tensor
    square: Tensor
    steps: int = 0

    @classmethod
    def of(cls, line: Relaxation, rows: int) -> _Slopes:
        """Begin at the slopes of the upper lines: from 0 or 1 the first steps lead nowhere."""
        free = ((line.upper > 0) & (line.upper < 1)).nonzero().squeeze(1)
        lower = line.lower.repeat(rows, 1)
        lower[:, free] = line.upper[free]
        zero = torch.zeros_like(lower[:, free])
        return cls(line._replace(lower=lower), free, zero, zero.clone())

    def descend(self, gradient: Tensor) -> None:
        """One step of Adam, back into [0, 1]; `gradient` is `(R, width)`."""
        self.steps += 1
        downhill = gradient[:, self.free]
        self.mean.lerp_(downhill, 1 - _MEAN)
        self.square.lerp_(downhill.square(), 1 - _SQUARE)
        mean = self.mean / (1 - _MEAN**self.steps)
        size = (self.square / (1 - _SQUARE**self.steps)).sqrt() + _TINY
        slopes = self.line.lower[:, self.free] - _STEP * _DECAY ** (self.steps - 1) * mean / size
        self.line.lower[:, self.free] = slopes.clamp(0, 1)
