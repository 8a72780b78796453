"""A ReLU network on [-1, 1] whose graph is the paper's figure 2: four segments, four patterns.

From left to right: `f2` rises to a local peak, `f3` falls into a valley, `f4` climbs out of it, and
`f1` rises gently to the global maximum. With a segment's name for its affine function, extended to
the whole line, `f1(x) > f3(x) > f2(x) > f4(x)` at the start: the caption's inequality.

The paper does not print the function. That `f1` is no neighbour of `f2` follows from the caption:
next to `f2` and above it at `x`, it could hold no higher hill on which gradient ascent would not
arrive.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from facetwalk.sites import discover
from facetwalk.spaces import Box

PEAK, VALLEY, HILL = -0.4, 0.0, 0.4
"""Where one segment ends and the next begins."""
START = -0.59
"""On `f2`, near the local peak."""


@dataclass(frozen=True)
class Segment:
    """A piece of the graph."""

    name: str
    low: float
    high: float
    gates: tuple[int, int]
    """Which of the neurons `u` and `v` are on."""


SEGMENTS = (
    Segment("f2", -1.0, PEAK, (0, 0)),
    Segment("f3", PEAK, VALLEY, (0, 1)),
    Segment("f4", VALLEY, HILL, (1, 1)),
    Segment("f1", HILL, 1.0, (1, 0)),
)
"""From left to right."""
TARGET = SEGMENTS[-1]
"""The segment that the caption says is targeted."""


class ToyNetwork(nn.Module):
    """`1 + x - 0.8 u - 2 v` with `u = relu(x)` and `v = relu(x - 2 u + 0.4)`; `(B, 1)` to `(B, 1)`.

    >>> ToyNetwork()(torch.tensor([[-0.4], [0.0], [1.0]], dtype=torch.float64)).flatten().tolist()
    [0.6, 0.19999999999999996, 1.2]
    """

    def __init__(self) -> None:
        super().__init__()
        self.first = _linear([1.0], 0.0)
        self.second = _linear([1.0, -2.0], 0.4)
        self.last = _linear([1.0, -0.8, -2.0], 1.0)
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        u = torch.relu(self.first(x))
        v = torch.relu(self.second(torch.cat([x, u], 1)))
        return self.last(torch.cat([x, u, v], 1))


def _linear(weights: list[float], bias: float) -> nn.Linear:
    layer = nn.Linear(len(weights), 1, dtype=torch.float64)
    layer.weight.data.copy_(torch.tensor([weights], dtype=torch.float64))
    layer.bias.data.fill_(bias)
    return layer


def line(count: int = 1) -> Box:
    """The interval, once for each of so many problems."""
    ends = torch.ones(count, 1, dtype=torch.float64)
    return Box(-ends, ends, shape=(1,))


def extension(segment: Segment, x: float) -> float:
    """The segment's affine function at any `x`: the network with the segment's gates.

    >>> [round(extension(segment, START), 2) for segment in SEGMENTS]
    [0.41, 0.79, -1.1, 0.88]
    """
    point = torch.tensor([[x]], dtype=torch.float64)
    gates = [torch.tensor([[float(gate)]], dtype=torch.float64) for gate in segment.gates]
    network = ToyNetwork()
    with torch.no_grad():
        return discover(network, point).gated(point, gates)[0].item()
