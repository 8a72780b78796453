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
        layers = [_linear_layers(network) for network in networks]
        if len({tuple(tuple(layer.weight.shape) for layer in net) for net in layers}) != 1:
            raise InputError("stacked networks must be of the same sizes, and at least one")
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
        self.network_of_row = nn.Buffer(network_of_row, persistent=False)
        networks, run, counts = network_of_row.unique_consecutive(
            return_inverse=True, return_counts=True
        )
        self.most = int(counts.max()) if len(counts) else 0
        """Rows of the longest run of rows with the same network."""
        within = torch.arange(len(run), device=run.device) - (counts.cumsum(0) - counts)[run]
        self.place = nn.Buffer(run * self.most + within, persistent=False)
        """Where each row goes if every run is as long as the longest."""
        self.runs = nn.Buffer(networks, persistent=False)
        first = int(networks[0]) if len(networks) else 0
        in_order = torch.arange(first, first + len(networks), device=networks.device)
        self.slice = slice(first, first + len(networks))
        self.in_order = torch.equal(networks, in_order)
        """Whether the runs are those of networks that lie beside each other."""

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
        """Outputs `(B, outputs)` of inputs `(B, inputs)`; rows beyond `count` start over."""
        if len(x) % self.count:
            return self.select(torch.arange(len(x)) % self.count)(x)
        last = len(self.weights) - 1
        for depth, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = self._layer(x, weight, bias)
            x = torch.relu(x) if depth < last else x
        return x

    def _layer(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """One product for each run of rows, the shorter ones filled up with zeros."""
        which = self.slice if self.in_order else self.runs
        rows, inputs = len(self.runs) * self.most, x.shape[1]
        parts = x.reshape(-1, self.count, inputs)
        if rows > self.count:
            filled = parts.new_zeros(len(parts), rows, inputs)
            parts = filled.index_copy(1, self.place, parts)
        parts = parts.unflatten(1, (-1, self.most)).transpose(0, 1)
        y = torch.baddbmm(bias[which], parts.flatten(1, 2), weight[which])
        y = y.unflatten(1, (-1, self.most)).transpose(0, 1).flatten(1, 2)
        return (y[:, self.place] if rows > self.count else y).flatten(0, 1)


def _linear_layers(network: nn.Sequential) -> list[nn.Linear]:
    """The layers of `Linear, ReLU, ..., Linear`; anything else is refused."""
    kinds = [type(part) for part in network]
    if kinds != [nn.Linear, nn.ReLU] * (len(kinds) // 2) + [nn.Linear]:
        names = ", ".join(kind.__name__ for kind in kinds)
        raise InputError(f"stacked networks must be Linear, ReLU, ..., Linear; one is {names}")
    layers = [part for part in network if isinstance(part, nn.Linear)]
    if any(layer.bias is None for layer in layers):
        raise InputError("stacked networks must have biases: put zeros where there are none")
    return layers
