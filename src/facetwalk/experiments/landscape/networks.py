"""Networks of two inputs, written into records and read from them, and their proven extremes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from facetwalk import exact
from facetwalk.experiments.experiment import Record
from facetwalk.objectives import Output
from facetwalk.problem import Problem
from facetwalk.spaces import Box
from facetwalk.zoo import random_network

SMALL, LARGE = (2, 3, 1), (2, 12, 12, 1)
"""Layers of the network of panel (a), and of the others."""
_GAP = 1e-6


def square() -> Box:
    """The inputs: [-1, 1] x [-1, 1], in float64."""
    ends = torch.ones(2, dtype=torch.float64)
    return Box(-ends, ends)


def networks(sizes: Sequence[int], count: int) -> list[nn.Sequential]:
    """Random networks with the seeds 0, 1, 2, ..., in float64."""
    return [random_network(sizes, seed).double() for seed in range(count)]


def problem_of(network: nn.Sequential) -> Problem:
    """Its output is to be maximised on the square."""
    return Problem(network, Output(0), square())


def written(network: nn.Sequential) -> list[list[list[float]]]:
    """Every layer as rows of weights, each followed by its bias; see `read`."""
    layers = [layer for layer in network if isinstance(layer, nn.Linear)]
    return [torch.cat([layer.weight, layer.bias[:, None]], 1).tolist() for layer in layers]


def read(layers: Sequence[Sequence[Sequence[float]]]) -> nn.Sequential:
    """The network that `written` wrote.

    >>> network = random_network((2, 3, 1), seed=0).double()
    >>> x = torch.ones(1, 2, dtype=torch.float64)
    >>> bool(read(written(network))(x) == network(x))
    True
    """
    parts: list[nn.Module] = []
    for rows in layers:
        whole = torch.tensor(rows, dtype=torch.float64)
        layer = nn.Linear(whole.shape[1] - 1, len(whole), dtype=torch.float64)
        layer.weight.data.copy_(whole[:, :-1])
        layer.bias.data.copy_(whole[:, -1])
        parts += [layer, nn.ReLU()]
    return nn.Sequential(*parts[:-1]).eval()


@dataclass(frozen=True)
class Extremes:
    """The proven maximum and minimum of a network on the square."""

    highest: exact.Proof
    lowest: float

    @classmethod
    def of(cls, network: nn.Sequential) -> Extremes:
        top, bottom = (
            exact.maximize(network, square(), Output(0, sign), gap=_GAP, engine="boxes")
            for sign in (1, -1)
        )
        return cls(top, -bottom.value)

    def share(self, value: Tensor) -> Tensor:
        """How far values are on the way from the minimum, 0, to the maximum, 1."""
        return (value - self.lowest) / (self.highest.value - self.lowest)

    def record(self) -> Record:
        top = self.highest
        return {
            "x": top.x.tolist(),
            "value": top.value,
            "bound": top.bound,
            "proven": top.proven,
            "lowest": self.lowest,
        }
