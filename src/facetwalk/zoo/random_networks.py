"""Fully connected ReLU networks with uniform random weights, as in the paper's ablations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
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
        try:
            linear = skip_init(nn.Linear, inputs, outputs)
        except (RuntimeError, TypeError) as error:  # no memory, or more than torch can count
            raise InputError(
                f"a layer of {inputs} by {outputs} weights does not fit in memory: choose smaller "
                "sizes"
            ) from error
        for parameter in linear.parameters():
            nn.init.uniform_(parameter, -1, 1, generator=generator)
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1]).eval()


def uniform_network(sizes: Sequence[int], seed: int) -> nn.Sequential:
    """As `random_network`, in float64 and drawn by numpy's `default_rng(seed)`.

    Layer by layer, the weights `(inputs, outputs)` and then the biases: numbers that anyone can
    draw again without torch.

    >>> uniform_network(MODEL_A, seed=0)(torch.zeros(1, 10, dtype=torch.float64)).shape
    torch.Size([1, 1])
    """
    generator = np.random.default_rng(seed)
    return _drawn(sizes, lambda shape: generator.uniform(-1, 1, shape))


def notebook_network(seed: int = 337550) -> nn.Sequential:
    """Model A as the notebook of ADR-GD's authors draws it, in float64.

    With numpy's legacy generator, for each weight matrix `(inputs, outputs)` and then for the
    biases: first the signs, negative where a uniform draw exceeds one half, then the magnitudes,
    uniform on (0, 1). On network 337550 they report 24.8431 for ADR-GD and 19.9599 for GD. The
    order of draws is our reading; on the network that it gives, their GD ends at their value.

    >>> notebook_network()(torch.zeros(1, 10, dtype=torch.float64)).shape
    torch.Size([1, 1])
    """
    generator = np.random.RandomState(seed)

    def draw(shape: tuple[int, ...]) -> np.ndarray:
        signs = np.where(generator.uniform(0, 1, shape) > 0.5, -1.0, 1.0)
        return signs * generator.uniform(0, 1, shape)

    return _drawn(MODEL_A, draw)


def _drawn(sizes: Sequence[int], draw: Callable[[tuple[int, ...]], np.ndarray]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        linear = skip_init(nn.Linear, inputs, outputs, dtype=torch.float64)
        weight, bias = linear.parameters()
        weight.data.copy_(torch.from_numpy(draw((inputs, outputs)).T))
        bias.data.copy_(torch.from_numpy(draw((outputs,))))
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1]).eval()
