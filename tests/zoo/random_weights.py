"""Random inputs and weights for the tests of image classifiers."""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import Tensor, nn

Network = TypeVar("Network", bound=nn.Module)


def draw(*shape: int) -> Tensor:
    """Normal numbers in double precision."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def randomised(net: Network) -> Network:
    """`net`, also one on the meta device, in eval mode and double precision, with new weights.

    No two entries of its state are alike, and signals neither fade nor explode.
    """
    generator = torch.Generator().manual_seed(0)
    net = net.double().to_empty(device="cpu").eval()
    for part in net.modules():
        if isinstance(part, nn.Conv2d | nn.Linear):
            nn.init.kaiming_uniform_(part.weight, nonlinearity="relu", generator=generator)
            if part.bias is not None:
                nn.init.uniform_(part.bias, -0.1, 0.1, generator=generator)
        elif isinstance(part, nn.BatchNorm2d):
            part.num_batches_tracked.zero_()
            for values in (part.bias, part.running_mean):
                nn.init.uniform_(values, -0.2, 0.2, generator=generator)
            for values in (part.weight, part.running_var):
                nn.init.uniform_(values, 0.5, 1.5, generator=generator)
    return net
