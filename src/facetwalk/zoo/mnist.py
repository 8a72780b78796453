"""Small convolutional networks for MNIST: the paper's, and one with strided convolutions."""

from __future__ import annotations

from torch import Tensor, nn


class MnistCnn(nn.Module):
    """Three convolutions and two linear layers, 8,396 ReLU neurons; logits of `(B, 1, 28, 28)`.

    Parameter names are those of the authors' released weights, which load as they are.
    Pixels are in [0, 1], not normalised.
    """

    input_shape = (1, 28, 28)

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


class MnistStrided(nn.Sequential):
    """Wong and Kolter's network, 4,804 ReLU neurons; logits `(B, 10)` of `(B, 1, 28, 28)`.

    Pixels are in [0, 1], not normalised.
    """

    input_shape = (1, 28, 28)

    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(1, 16, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(1568, 100),
            nn.ReLU(),
            nn.Linear(100, 10),
        )
