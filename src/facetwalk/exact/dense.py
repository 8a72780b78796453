"""The affine maps of a small network as matrices."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from facetwalk.exact.backward_bounds import rows_at_once
from facetwalk.exact.graph import Graph, Pullback
from facetwalk.exact.rounding import ROUNDING
from facetwalk.types import ModelError

_TOLERANCE = 1e-9
"""Largest accepted difference from the network itself, as a share of the largest output."""
_MOST_NUMBERS = 2**27
"""Entries that all matrices together may have, a gigabyte in float64."""


@dataclass(frozen=True)
class Layer:
    """`input @ x + sum_j hidden[j] @ a_j + bias`: pre-activations of a site, or the outputs."""

    input: Tensor | None
    """`(width, inputs)`, or None where the layer does not see the input."""
    hidden: dict[int, Tensor]
    """`(width, width of site j)` for the sites j that the layer sees."""
    bias: Tensor
    """`(width, 1)`."""


@dataclass(frozen=True)
class Dense:
    """A network as layers: one for each site, then the outputs. Points are columns."""

    layers: list[Layer]
    inputs: int

    @classmethod
    def of(cls, graph: Graph, *, deadline: float = math.inf) -> Dense | None:
        """The matrices of a graph, checked against the network at random points; None where
        they are too large, or not there by `deadline`, on the clock of `time.perf_counter`.
        """
        layers, room = [], _MOST_NUMBERS
        for position, width in [*enumerate(graph.widths), (-1, graph.outputs)]:
            parts: list[Pullback] = []
            for rows in torch.arange(width, device=graph.device).split(rows_at_once(graph)):
                if time.perf_counter() > deadline or room < 0:
                    return None
                parts.append(graph.pull_back(position, one_hot(rows, width).double()))
                blocks = [parts[-1].input, *parts[-1].hidden]
                room -= sum(block.numel() for block in blocks if block is not None)
            layers.append(_layer(parts))
        inputs = torch.Size(graph.shape).numel()
        dense = cls(layers, inputs)
        random = torch.Generator().manual_seed(0)
        x = torch.randn(inputs, 5, generator=random, dtype=torch.float64).to(graph.device)
        expected = graph(x.T.reshape(-1, *graph.shape)).T
        if not (dense(x) - expected).abs().max() <= _TOLERANCE * (1 + expected.abs().max()):
            raise ModelError("the network is not the piecewise-linear function that it seemed")
        return dense

    def __call__(self, x: Tensor) -> Tensor:
        """Outputs `(outputs, B)` of inputs `(inputs, B)`."""
        hidden: list[Tensor] = []
        z = x
        for layer in self.layers:
            z = layer.bias + sum(matrix @ hidden[j] for j, matrix in layer.hidden.items())
            z = z if layer.input is None else z + layer.input @ x
            hidden.append(z.clamp(min=0))
        return z.expand(-1, x.shape[1])

    def slack(self, low: Tensor, high: Tensor) -> Tensor:
        """What rounding may cost each output, `(outputs,)`, between `low` and `high`, `(inputs,)`:
        a share of the sum of the absolute values of all that it adds up.
        """
        size = torch.maximum(low.abs(), high.abs())
        sizes: list[Tensor] = []
        total = size[:, None]
        for layer in self.layers:
            total = layer.bias.abs()
            total = total + sum(matrix.abs() @ sizes[j] for j, matrix in layer.hidden.items())
            if layer.input is not None:
                total = total + layer.input.abs() @ size[:, None]
            sizes.append(total)
        return ROUNDING * total.squeeze(1)


def _layer(parts: list[Pullback]) -> Layer:
    """A layer of its rows, some of them in each part."""
    of_input = torch.cat([part.input for part in parts])
    hidden = {}
    for site in range(len(parts[0].hidden)):
        blocks = [block for part in parts if (block := part.hidden[site]) is not None]
        if blocks and any(bool(block.any()) for block in blocks):
            hidden[site] = torch.cat(blocks)
    bias = torch.cat([part.constant for part in parts])[:, None]
    return Layer(of_input if bool(of_input.any()) else None, hidden, bias)
