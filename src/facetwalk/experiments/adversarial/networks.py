"""The networks under attack, and the files in which they are looked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from facetwalk.messages import reason
from facetwalk.sites import SiteSelection
from facetwalk.types import InputError
from facetwalk.zoo import (
    MnistCnn,
    Normalize,
    SqueezeNet,
    WideResNet50_2,
    digits_net,
    load_trained,
    load_weights,
)


@dataclass(frozen=True)
class Network:
    """A classifier of pixels in [0, 1]."""

    name: str
    robust: bool
    file: str | None
    """Its name in the folder of networks; None for one that the package ships."""
    read: Callable[[Path], nn.Module]
    gates: SiteSelection = "all"
    """The sites that get gates of ADR-GD."""

    def load(self, folder: Path | None) -> nn.Module:
        """The network in eval mode, on the CPU; `InputError` where its file is not there."""
        if self.file is None:
            return self.read(Path())
        if folder is None or not (folder / self.file).is_file():
            place = "no folder of networks is given" if folder is None else f"it is not in {folder}"
            raise InputError(f"{self.file} is missing: {place}")
        return self.read(folder / self.file)


def _trained(path: Path) -> nn.Module:
    return load_trained(path).model


def _state_dict(make: Callable[[], nn.Module]) -> Callable[[Path], nn.Module]:
    def read(path: Path) -> nn.Module:
        try:
            weights = torch.load(path, "cpu", weights_only=True)
        except Exception as error:
            raise InputError(f"{path} cannot be read as weights ({reason(error)})") from error
        return load_weights(make(), weights)

    return read


def _of_photographs(make: Callable[[], nn.Module]) -> Callable[[Path], nn.Module]:
    """For networks that expect ImageNet's mean and spread."""
    read = _state_dict(make)
    return lambda path: nn.Sequential(Normalize(), read(path)).eval()


def _own(name: str, robust: bool) -> Network:
    """A network that `facetwalk train` makes."""
    return Network(name, robust, f"{name}.safetensors", _trained)


def _released(name: str, robust: bool) -> Network:
    """A network that the paper's authors published."""
    return Network(name, robust, f"{name}.pt", _state_dict(MnistCnn))


MNIST = (
    _own("mnist-natural", robust=False),
    _own("mnist-fgsm", robust=True),
    _own("mnist-pgd", robust=True),
    _released("mnist_cnn_clean", robust=False),
    _released("mnist_cnn_pgd", robust=True),
)
CIFAR10 = (
    _own("cifar-vgg19-natural", robust=False),
    _own("cifar-vgg19-fgsm", robust=True),
    _own("cifar-vgg19-pgd", robust=True),
)
IMAGENET = (
    # The paper gates "the last layer" and counts 351,232 - 150,528 = 200,704 gates. That is the
    # last bottleneck block: 2 x 1024 x 7 x 7 + 2048 x 7 x 7.
    Network(
        "wide_resnet50_2",
        robust=False,
        file="wide_resnet50_2.pt",
        read=_of_photographs(WideResNet50_2),
        gates="1.layer4.2",
    ),
    Network(
        "squeezenet1_1",
        robust=False,
        file="squeezenet1_1.pt",
        read=_of_photographs(SqueezeNet),
        gates="last",
    ),
)
DIGITS = (Network("digits", robust=True, file=None, read=lambda _: digits_net()),)
