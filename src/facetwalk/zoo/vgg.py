"""VGG19 (Simonyan and Zisserman, 2015) for images of 32 x 32 pixels."""

from __future__ import annotations

from torch import Tensor, nn

_STAGES = ((2, 64), (2, 128), (4, 256), (4, 512), (4, 512))
"""How many convolutions with how many channels stand before each pool."""


class Vgg19(nn.Module):
    """Normalised images `(B, 3, 32, 32)` to logits `(B, classes)`; every activation is a ReLU.

    The state dict has the names and shapes of chengyangfu/pytorch-vgg-cifar10: `features.N` as in
    torchvision's `vgg19` or `vgg19_bn`, and linear layers `classifier.1`, `.4` and `.6` of 512
    neurons, which torchvision has elsewhere and larger.

    >>> import torch
    >>> Vgg19().eval()(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    input_shape = (3, 32, 32)

    def __init__(self, classes: int = 10, batch_norm: bool = False) -> None:
        super().__init__()
        self.features = nn.Sequential(*_convolutions(batch_norm))
        self.classifier = nn.Sequential(
            nn.Dropout(),
            _started(nn.Linear(512, 512)),
            nn.ReLU(inplace=True),
            nn.Dropout(),
            _started(nn.Linear(512, 512)),
            nn.ReLU(inplace=True),
            _started(nn.Linear(512, classes)),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(x).flatten(1))


def _convolutions(batch_norm: bool) -> list[nn.Module]:
    layers: list[nn.Module] = []
    inputs = 3
    for count, outputs in _STAGES:
        for _ in range(count):
            layers.append(_convolution(inputs, outputs))
            if batch_norm:
                layers.append(nn.BatchNorm2d(outputs))
            layers.append(nn.ReLU(inplace=True))
            inputs = outputs
        layers.append(nn.MaxPool2d(2))
    return layers


def _convolution(inputs: int, outputs: int) -> nn.Module:
    return _started(nn.Conv2d(inputs, outputs, 3, padding=1))


def _started(layer: nn.Conv2d | nn.Linear) -> nn.Module:
    """Starts as He et al. (2015) have it: with torch's own start, signals fade in 19 layers."""
    nn.init.kaiming_normal_(layer.weight, mode="fan_in", nonlinearity="relu")
    assert layer.bias is not None
    nn.init.zeros_(layer.bias)
    return layer
