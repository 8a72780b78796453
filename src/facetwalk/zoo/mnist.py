"""The paper's small convolutional network for MNIST."""

from __future__ import annotations

from torch import Tensor, nn


class MnistCnn(nn.Module):
    """Three convolutions and two linear layers, 8,396 ReLU neurons; logits of `(B, 1, 28, 28)`.

    Parameter names are those of the authors' released weights, which load as they are.
    Pixels are in [0, 1], not normalised.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ConvLayers = nn.Sequential(
            nn.Conv2d(1, 8, 10),
            nn.ReLU(),
            nn.Conv2d(8, 32, 8),
            nn.ReLU(),
            nn.Conv2d(32, 32, 8),
            nn.ReLU(),
        )
        self.fc_layer = nn.Sequential(nn.Linear(800, 100), nn.ReLU(), nn.Linear(100, 10))

    def forward(self, x: Tensor) -> Tensor:
        return self.fc_layer(self.ConvLayers(x).flatten(1))
