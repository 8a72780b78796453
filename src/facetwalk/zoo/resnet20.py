"""ResNet-20 for CIFAR-10, as He et al. (2016) have it: shortcuts without weights."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class ResNet20(nn.Module):
    """Normalised images `(B, 3, 32, 32)` to logits `(B, 10)`; names as in public checkpoints."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = _stage(16, 16, stride=1)
        self.layer2 = _stage(16, 32, stride=2)
        self.layer3 = _stage(32, 64, stride=2)
        self.linear = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.linear(x.mean((2, 3)))


def _stage(inputs: int, outputs: int, stride: int) -> nn.Sequential:
    blocks = [_Block(inputs, outputs, stride), *(_Block(outputs, outputs, 1) for _ in range(2))]
    return nn.Sequential(*blocks)


class _Block(nn.Module):
    """Two convolutions beside a shortcut that skips pixels and adds empty channels."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.stride, self.added = stride, outputs - inputs

    def forward(self, x: Tensor) -> Tensor:
        inside = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        shortcut = x[:, :, :: self.stride, :: self.stride]
        shortcut = nn.functional.pad(shortcut, (0, 0, 0, 0, self.added // 2, self.added // 2))
        return torch.relu(inside + shortcut)
