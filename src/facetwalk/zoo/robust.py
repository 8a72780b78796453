"""The robust image classifiers that this project trains and ships.

`train_robust` makes their weights; `BY_NAME` says how.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import resources
from typing import Literal

import torch
from torch import nn

from facetwalk.types import InputError, MissingExtraError, ModelError
from facetwalk.zoo.cifar import CifarCnn, CifarResNet
from facetwalk.zoo.mnist import MnistCnn, MnistStrided


@dataclass(frozen=True, kw_only=True)
class RobustTraining:
    """One network, and how it is trained."""

    name: str
    data: Literal["mnist", "cifar10"]
    architecture: Callable[[], nn.Module]
    radius: float
    """L-infinity radius of the perturbations that the network is trained against."""
    attack_steps: int
    """Gradient steps that make a perturbation."""
    epochs: int
    batch_size: int
    learning_rate: float
    """Adam's, at its highest."""
    seed: int


_MNIST = RobustTraining(
    name="mnist-cnn-0.3",
    data="mnist",
    architecture=MnistCnn,
    radius=0.3,
    attack_steps=10,
    epochs=24,
    batch_size=256,
    learning_rate=1e-3,
    seed=0,
)
_CIFAR = RobustTraining(
    name="cifar-cnn-8",
    data="cifar10",
    architecture=CifarCnn,
    radius=8 / 255,
    attack_steps=7,
    epochs=30,
    batch_size=256,
    learning_rate=1e-3,
    seed=3,
)
_STRIDED = replace(
    _MNIST, name="mnist-strided-0.3", architecture=MnistStrided, learning_rate=2e-3, seed=2
)
_RESIDUAL = replace(
    _CIFAR, name="cifar-resnet-8", architecture=CifarResNet, learning_rate=3e-3, seed=4
)

BY_NAME = {
    training.name: training
    for training in (
        _MNIST,
        replace(_MNIST, name="mnist-cnn-0.2", radius=0.2, seed=1),
        _STRIDED,
        _CIFAR,
        _RESIDUAL,
    )
}


def robust_net(name: str) -> nn.Module:
    """The shipped network of that name, in eval mode; its class has the `input_shape`."""
    if name not in BY_NAME:
        raise InputError(f"{name!r} names no robust network: use one of {', '.join(BY_NAME)}")
    try:
        from safetensors.torch import load
    except ImportError as error:
        raise MissingExtraError("a robust network", "demo") from error
    folder = resources.files("facetwalk.zoo").joinpath("weights")
    file = folder.joinpath(f"{name}.safetensors")
    if not file.is_file():
        raise ModelError(
            f"there are no weights of {name} in {folder}: make them with "
            f"python -m facetwalk.zoo.train_robust {name} --data FOLDER --out {folder}"
        )
    with torch.device("meta"):
        net = BY_NAME[name].architecture()
    net.load_state_dict(load(file.read_bytes()), assign=True)
    return net.eval()
