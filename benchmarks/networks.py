"""The classifiers of the benchmarks: networks, images, and the radii at which they are attacked.

Those in L2 and L1 are the radii of Maini et al. (2020), "Adversarial robustness against the union
of multiple perturbation models".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from report import data_folder
from torch import Tensor, nn

from facetwalk.data import ImageFiles, cifar10, mnist
from facetwalk.zoo import (
    MnistCnn,
    MnistStrided,
    Normalize,
    ResNet20,
    SqueezeNet,
    digits,
    digits_net,
    load_trained,
    load_weights,
    shipped_net,
)


@dataclass(frozen=True)
class Case:
    """A network under attack within `eps` of each image, pixels in [0, 1]."""

    network: str
    load: Callable[[], nn.Module]
    images: Callable[[], tuple[Tensor, Tensor]]
    eps: float
    robust: bool
    norm: str = "inf"
    """In which `eps` is measured: "inf", "2" or "1"."""

    @property
    def name(self) -> str:
        eps = f"{255 * self.eps:g}/255" if self.eps < 0.05 else f"{self.eps:g}"
        norm = "" if self.norm == "inf" else f"L{self.norm} "
        return f"{self.network}, {norm}eps {eps}"


def _weights(name: str) -> dict[str, Any]:
    return torch.load(data_folder() / "classifiers" / f"{name}.pt", "cpu", weights_only=True)


def _released(name: str) -> nn.Module:
    return load_weights(MnistCnn(), _weights(name))


def _wong_kolter() -> nn.Module:
    return load_weights(MnistStrided(), _weights("mnist_wong_kolter"))


def _resnet20() -> nn.Module:
    net = load_weights(ResNet20(), _weights("cifar10_resnet20")["state_dict"])
    return nn.Sequential(Normalize(), net).eval()


def _squeezenet() -> nn.Module:
    file = data_folder() / "imagenet" / "squeezenet1_1.pt"
    net = load_weights(SqueezeNet(), torch.load(file, "cpu", weights_only=True))
    return nn.Sequential(Normalize(), net).eval()


def _trained(name: str) -> nn.Module:
    """What `facetwalk train NAME` wrote to the folder `networks`; a GPU likes its channels last."""
    net = load_trained(data_folder() / "networks" / f"{name}.safetensors").model
    return net.to(memory_format=torch.channels_last)


def _mnist() -> tuple[Tensor, Tensor]:
    return mnist(data_folder(), "test")


def _cifar() -> tuple[Tensor, Tensor]:
    return cifar10(data_folder(), "test")


def _imagenet() -> tuple[Tensor, Tensor]:
    """The centres of images whose names begin with their class."""
    files = sorted((data_folder() / "imagenet" / "images").glob("*.jpg"))
    labels = [int(file.name.split("_")[0]) for file in files]
    return ImageFiles(tuple(files))[:], torch.tensor(labels)


def _digits() -> tuple[Tensor, Tensor]:
    return digits("test")


def _within(norm: str, mnist: float, cifar: float) -> list[Case]:
    """Robust networks in another norm than the one that they were trained for."""
    released = ("mnist_cnn_pgd", lambda: _released("mnist_cnn_pgd"))
    certified = ("mnist_wong_kolter", _wong_kolter)
    ours = ("mnist-cnn-0.3", "mnist-cnn-0.2", "mnist-strided-0.3", "mnist-pgd")
    of_mnist = [released, certified, *((name, partial(shipped_net, name)) for name in ours)]
    of_cifar = [(n, partial(shipped_net, n)) for n in ("cifar-cnn-8", "cifar-resnet-8")]
    return [
        *(Case(name, load, _mnist, mnist, robust=True, norm=norm) for name, load in of_mnist),
        *(Case(name, load, _cifar, cifar, robust=True, norm=norm) for name, load in of_cifar),
    ]


CASES = [
    Case("mnist_cnn_pgd", lambda: _released("mnist_cnn_pgd"), _mnist, 0.20, robust=True),
    Case("mnist_cnn_pgd", lambda: _released("mnist_cnn_pgd"), _mnist, 0.25, robust=True),
    Case("mnist_cnn_clean", lambda: _released("mnist_cnn_clean"), _mnist, 0.05, robust=False),
    Case("mnist_wong_kolter", _wong_kolter, _mnist, 0.10, robust=True),
    Case("mnist_wong_kolter", _wong_kolter, _mnist, 0.15, robust=True),
    Case("mnist-cnn-0.3", lambda: shipped_net("mnist-cnn-0.3"), _mnist, 0.30, robust=True),
    Case("mnist-cnn-0.2", lambda: shipped_net("mnist-cnn-0.2"), _mnist, 0.25, robust=True),
    Case("mnist-strided-0.3", lambda: shipped_net("mnist-strided-0.3"), _mnist, 0.30, robust=True),
    Case("mnist-fgsm", lambda: shipped_net("mnist-fgsm"), _mnist, 0.20, robust=True),
    Case("mnist-pgd", lambda: shipped_net("mnist-pgd"), _mnist, 0.20, robust=True),
    Case("cifar-cnn-8", lambda: shipped_net("cifar-cnn-8"), _cifar, 8 / 255, robust=True),
    Case("cifar-resnet-8", lambda: shipped_net("cifar-resnet-8"), _cifar, 8 / 255, robust=True),
    Case("cifar-vgg19-fgsm", lambda: _trained("cifar-vgg19-fgsm"), _cifar, 8 / 255, robust=True),
    Case("cifar-vgg19-pgd", lambda: _trained("cifar-vgg19-pgd"), _cifar, 8 / 255, robust=True),
    Case("cifar10_resnet20", _resnet20, _cifar, 0.5 / 255, robust=False),
    Case("squeezenet1_1", _squeezenet, _imagenet, 0.25 / 255, robust=False),
    Case("digits", digits_net, _digits, 0.20, robust=True),
]

BY_NORM = {
    "inf": CASES,
    "2": _within("2", mnist=2.0, cifar=0.5),
    "1": _within("1", mnist=10.0, cifar=12.0),
}
