"""A network over one box whose hinges lie between straight lines: linear functions above it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from facetwalk.exact.graph import Graph, Pullback
from facetwalk.exact.relaxation import Relaxation, relax
from facetwalk.exact.rounding import ROUNDING


class Above(NamedTuple):
    """For each of R rows a linear function of the input that is nowhere in the box below it."""

    bound: Tensor
    """The largest value in the box, with the slack for rounding: `(R,)`."""
    corner: Tensor
    """Where it is reached: `(R, inputs)`."""
    weights: list[Tensor | None]
    """By how much each row counts each hinge, `(R, neurons of the site)`: what is positive was
    replaced by the line above the hinge, what is negative by the one below."""


@dataclass(frozen=True)
class Relaxed:
    """The box `center +- radius`, each `(inputs,)`, and lines around the hinges of the first sites.

    The slopes of a line are `(neurons,)`, or `(R, neurons)` where each row has slopes of its own.
    """

    graph: Graph
    center: Tensor
    radius: Tensor
    lines: list[Relaxation] = field(default_factory=list)
    sizes: list[Tensor] = field(default_factory=list)
    """Of each site so far, how large a pre-activation may be."""

    def learn(self, low: Tensor, high: Tensor) -> None:
        """Take bounds `(neurons,)` on the next site."""
        self.lines.append(relax(low, high))
        self.sizes.append(torch.maximum(low.abs(), high.abs()))

    def above(self, pulled: Pullback) -> Above:
        """Replace hinges by lines, from the last site back, until only the input is left."""
        on_input, constant, weights = pulled.input, pulled.constant, list(pulled.hidden)
        terms = constant.abs()
        for site in reversed(range(len(self.lines))):
            weight = weights[site]
            if weight is None or not bool(weight.any()):
                continue
            line, rising, falling = self.lines[site], weight.clamp(min=0), weight.clamp(max=0)
            constant = constant + rising @ line.offset
            terms = terms + weight.abs() @ self.sizes[site]
            pulled = self.graph.pull_back(site, rising * line.upper + falling * line.lower)
            on_input, constant = on_input + pulled.input, constant + pulled.constant
            terms = terms + pulled.constant.abs()
            for earlier, more in enumerate(pulled.hidden):
                before = weights[earlier]
                if more is not None:
                    weights[earlier] = more if before is None else before + more
        terms = terms + on_input.abs() @ (self.center.abs() + self.radius)
        bound = constant + on_input @ self.center + on_input.abs() @ self.radius
        corner = self.center + self.radius * on_input.sign()
        return Above(bound + ROUNDING * terms, corner, weights)
