"""The image classifiers of this project by name: pixels in [0, 1] to ten logits."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from facetwalk.types import InputError
from facetwalk.zoo.cifar import CifarCnn, CifarResNet
from facetwalk.zoo.mnist import MnistCnn, MnistStrided
from facetwalk.zoo.normalize import CIFAR_MEAN, CIFAR_STD, Normalize
from facetwalk.zoo.resnet import ResNet18
from facetwalk.zoo.vgg import Vgg19


class _CifarPixels(nn.Sequential):
    """A network for normalised images, which gets pixels `(B, 3, 32, 32)` and normalises them."""

    input_shape = (3, 32, 32)

    def __init__(self, net: nn.Module) -> None:
        super().__init__(Normalize(CIFAR_MEAN, CIFAR_STD), net)


ARCHITECTURES: dict[str, Callable[[], nn.Module]] = {
    "mnist-cnn": MnistCnn,
    "mnist-strided": MnistStrided,
    "cifar-cnn": CifarCnn,
    "cifar-resnet": CifarResNet,
    "cifar-vgg19": lambda: _CifarPixels(Vgg19(batch_norm=True)),
    "cifar-vgg19-plain": lambda: _CifarPixels(Vgg19()),
    "cifar-resnet18": lambda: _CifarPixels(ResNet18()),
}
"""Functions that make them; each has an `input_shape`."""


def fresh_net(architecture: str, seed: int = 0) -> nn.Module:
    """A network that knows nothing yet, on the CPU and in training mode; the seed decides it.

    >>> fresh_net("mnist-cnn").input_shape
    (1, 28, 28)
    >>> fresh_net("mnist-rnn")
    Traceback (most recent call last):
    facetwalk.types.InputError: 'mnist-rnn' names no architecture: use one of mnist-cnn, ...
    """
    if architecture not in ARCHITECTURES:
        raise InputError(
            f"{architecture!r} names no architecture: use one of {', '.join(ARCHITECTURES)}"
        )
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return ARCHITECTURES[architecture]()
