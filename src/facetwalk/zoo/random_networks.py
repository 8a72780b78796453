"""Fully connected ReLU networks with uniform random weights, as in the paper's ablations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import nn
from torch.nn.utils import skip_init

from facetwalk.types import InputError

MODEL_A = (10, 64, 64, 1)
MODEL_B = (10, 500, 500, 500, 1)
MODEL_C = (128, 500, 500, 500, 1)


def random_network(sizes: Sequence[int], seed: int) -> nn.Sequential:
    """Inputs `(B, sizes[0])` to outputs `(B, sizes[-1])`, with a ReLU between linear layers.

    Weights and biases are uniform on (-1, 1) and depend on `seed` alone. In eval mode.

    >>> random_network(MODEL_A, seed=0)(torch.zeros(5, 10)).shape
    torch.Size([5, 1])
    """
    if len(sizes) < 2 or not all(isinstance(size, int) and size > 0 for size in sizes):
        raise InputError(
            "a random network needs two or more layer sizes, all positive integers, "
            f"such as 10,64,64,1; these are {', '.join(map(str, sizes)) or 'none'}"
        )
    generator = torch.Generator().manual_seed(seed)
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        linear = skip_init(nn.Linear, inputs, outputs)
        for parameter in linear.parameters():
            nn.init.uniform_(parameter, -1, 1, generator=generator)
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1]).eval()
