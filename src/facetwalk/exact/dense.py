"""The affine maps of a small network as matrices."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from facetwalk.exact.graph import Graph
from facetwalk.exact.rounding import ROUNDING
from facetwalk.types import ModelError

_TOLERANCE = 1e-9
"""Largest accepted difference from the network itself, as a share of the largest output."""
_ROWS = 512


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
    def of(cls, graph: Graph) -> Dense:
        """The matrices of a graph, checked against the network at random points."""
        widths = [*graph.widths, graph.outputs]
        positions = [*range(len(graph.widths)), -1]
        layers = [_layer(graph, p, w) for p, w in zip(positions, widths, strict=True)]
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


def _layer(graph: Graph, position: int, width: int) -> Layer:
    eye = torch.eye(width, dtype=torch.float64, device=graph.device)
    parts = [graph.pull_back(position, rows) for rows in eye.split(_ROWS)]
    of_input = torch.cat([part.input for part in parts])
    hidden = {}
    for site in range(len(graph.widths)):
        blocks = [block for part in parts if (block := part.hidden[site]) is not None]
        if blocks and any(bool(block.any()) for block in blocks):
            hidden[site] = torch.cat(blocks)
    bias = torch.cat([part.constant for part in parts])[:, None]
    return Layer(of_input if bool(of_input.any()) else None, hidden, bias)
