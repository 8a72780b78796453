"""SqueezeNet 1.1 (Iandola et al., 2016), in the layout of torchvision's state dict."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class SqueezeNet(nn.Module):
    """Normalised images `(B, 3, H, W)` to logits `(B, classes)`; every activation is a ReLU."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 64, 3, stride=2),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, ceil_mode=True),
            _Fire(64, 16, 64),
            _Fire(128, 16, 64),
            nn.MaxPool2d(3, 2, ceil_mode=True),
            _Fire(128, 32, 128),
            _Fire(256, 32, 128),
            nn.MaxPool2d(3, 2, ceil_mode=True),
            _Fire(256, 48, 192),
            _Fire(384, 48, 192),
            _Fire(384, 64, 256),
            _Fire(512, 64, 256),
        )
        self.classifier = nn.Sequential(
            nn.Dropout(), nn.Conv2d(512, classes, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1)
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(x)).flatten(1)


class _Fire(nn.Module):
    """Few channels between many: `(B, inputs, H, W)` to `(B, 2 * wide, H, W)`."""

    def __init__(self, inputs: int, narrow: int, wide: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(inputs, narrow, 1)
        self.expand1x1 = nn.Conv2d(narrow, wide, 1)
        self.expand3x3 = nn.Conv2d(narrow, wide, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.squeeze(x))
        return torch.cat([torch.relu(self.expand1x1(x)), torch.relu(self.expand3x3(x))], 1)
