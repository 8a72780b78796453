"""Pixels in [0, 1] to the mean and spread that a network was trained on."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
CIFAR_MEAN, CIFAR_STD = (0.4914, 0.4822, 0.4465), (0.247, 0.2435, 0.2616)


class Normalize(nn.Module):
    """`(x - mean) / std` by channel; put it before a network, and attack pixels.

    >>> Normalize([0.5], [0.25])(torch.ones(1, 1, 2, 2))[0, 0, 0, 0].item()
    2.0
    """

    def __init__(
        self, mean: Sequence[float] = IMAGENET_MEAN, std: Sequence[float] = IMAGENET_STD
    ) -> None:
        super().__init__()
        self.mean: Tensor
        self.std: Tensor
        for name, values in (("mean", mean), ("std", std)):
            column = torch.tensor(values).reshape(-1, 1, 1)
            self.register_buffer(name, column, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.std
