"""Small networks for CIFAR-10, a plain and a residual one.

Both take pixels in [0, 1], `(B, 3, 32, 32)`, and centre them themselves.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class _Centre(nn.Module):
    """Pixels in [0, 1] to about zero mean and unit variance."""

    def forward(self, x: Tensor) -> Tensor:
        return (x - 0.5) * 4


class CifarCnn(nn.Sequential):
    """Five convolutions and two linear layers, no batch norm; logits `(B, 10)`."""

    input_shape = (3, 32, 32)

    def __init__(self) -> None:
        super().__init__(
            _Centre(),
            nn.Conv2d(3, 32, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(64, 64, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(64, 128, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(128, 128, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(2048, 128),
            nn.ReLU(),
            nn.Linear(128, 10),
        )


class CifarResNet(nn.Sequential):
    """A residual network with batch norm, which eval mode makes affine; logits `(B, 10)`."""

    input_shape = (3, 32, 32)

    def __init__(self) -> None:
        super().__init__(
            _Centre(),
            nn.Conv2d(3, 32, 3, padding=1, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            _Block(32, 32, stride=1),
            _Block(32, 64, stride=2),
            _Block(64, 128, stride=2),
            nn.AvgPool2d(8),
            nn.Flatten(),
            nn.Linear(128, 10),
        )


class _Block(nn.Module):
    """Two convolutions beside a shortcut: `(B, inputs, H, W)` to `(B, outputs, h, w)`."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.residual = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.residual(x) + self.shortcut(x))
