"""Many fully connected networks of the same sizes as one model: one network a problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor, nn

from facetwalk.models import PerProblemModel
from facetwalk.types import InputError


class StackedNetworks(PerProblemModel):
    """Networks `Linear, ReLU, ..., Linear` side by side, so that a batch optimises all at once.

    >>> from facetwalk.zoo import random_network
    >>> nets = [random_network((3, 4, 1), seed) for seed in range(2)]
    >>> x = torch.ones(2, 3)
    >>> bool(torch.allclose(StackedNetworks(nets)(x)[1], nets[1](x)[1]))
    True
    """

    def __init__(self, networks: Sequence[nn.Sequential]) -> None:
        super().__init__()
        layers = [[m for m in network if isinstance(m, nn.Linear)] for network in networks]
        if len({tuple(tuple(layer.weight.shape) for layer in net) for net in layers}) != 1:
            raise InputError("stacked networks must be fully connected and of the same sizes")
        by_depth = list(zip(*layers, strict=True))
        self.weights = nn.ParameterList(
            [torch.stack([layer.weight.detach().T for layer in depth]) for depth in by_depth]
        )
        self.biases = nn.ParameterList(
            [torch.stack([layer.bias.detach() for layer in depth])[:, None] for depth in by_depth]
        )
        self._assign(torch.arange(len(networks), device=self.weights[0].device))
        self.eval()

    def _assign(self, network_of_row: Tensor) -> None:
        self.network_of_row = nn.Buffer(network_of_row)
        networks, counts = network_of_row.unique_consecutive(return_counts=True)
        even = len(networks) > 0 and bool((counts == counts[0]).all())
        self.rows_each = int(counts[0]) if even else None
        """Consecutive rows of each network, where that is the same number for all."""
        in_order = torch.arange(len(self.weights[0]), device=networks.device)
        self.all_in_order = torch.equal(networks, in_order)

    @property
    def count(self) -> int:
        return len(self.network_of_row)

    def select(self, rows: Tensor) -> Self:
        copy = object.__new__(type(self))
        nn.Module.__init__(copy)
        copy.weights, copy.biases = self.weights, self.biases
        copy._assign(self.network_of_row[rows.to(self.network_of_row.device)])
        return copy.eval()

    def forward(self, x: Tensor) -> Tensor:
        """Outputs `(B, outputs)` of inputs `(B, inputs)`."""
        apply = self._row_by_row
        if self.rows_each is not None and len(x) % self.count == 0:
            apply = self._network_by_network
        last = len(self.weights) - 1
        for depth, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = apply(x, weight, bias)
            x = torch.relu(x) if depth < last else x
        return x

    def _row_by_row(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        copies = -(-len(x) // self.count)
        network = self.network_of_row.repeat(copies)[: len(x)]
        return torch.baddbmm(bias[network], x[:, None], weight[network]).squeeze(1)

    def _network_by_network(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        each = self.rows_each or 1
        networks = self.network_of_row[::each]
        if not self.all_in_order:
            weight, bias = weight[networks], bias[networks]
        parts = x.reshape(-1, len(networks), each, x.shape[1]).transpose(0, 1)
        y = torch.baddbmm(bias, parts.flatten(1, 2), weight)
        return y.unflatten(1, (-1, each)).transpose(0, 1).flatten(0, 2)
