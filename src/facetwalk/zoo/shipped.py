"""The image classifiers that this project ships; `facetwalk.training` made them."""

from __future__ import annotations

from importlib import resources

from torch import nn

from facetwalk.types import InputError, MissingExtraError, ModelError
from facetwalk.zoo.architectures import fresh_net
from facetwalk.zoo.checkpoints import load_weights

BY_NAME = {
    "mnist-cnn-0.3": "mnist-cnn",
    "mnist-cnn-0.2": "mnist-cnn",
    "mnist-strided-0.3": "mnist-strided",
    "cifar-cnn-8": "cifar-cnn",
    "cifar-resnet-8": "cifar-resnet",
    "mnist-natural": "mnist-cnn",
    "mnist-fgsm": "mnist-cnn",
    "mnist-pgd": "mnist-cnn",
}
"""Their names, and the architecture of each."""


def shipped_net(name: str) -> nn.Module:
    """The shipped network of that name, in eval mode; its class has the `input_shape`."""
    if name not in BY_NAME:
        raise InputError(f"{name!r} names no network that ships: use one of {', '.join(BY_NAME)}")
    try:
        from safetensors.torch import load
    except ImportError as error:
        raise MissingExtraError("a network that ships", "demo") from error
    folder = resources.files("facetwalk.zoo").joinpath("weights")
    file = folder.joinpath(f"{name}.safetensors")
    if not file.is_file():
        raise ModelError(
            f"there are no weights of {name} in {folder}: make them with "
            f"facetwalk train {name} --data FOLDER --out {folder}"
        )
    return load_weights(fresh_net(BY_NAME[name]), load(file.read_bytes()))
