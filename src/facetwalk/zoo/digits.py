"""Handwritten digits, and the small convolutional network trained on them that we ship."""

from __future__ import annotations

from importlib import resources
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from facetwalk.types import InputError, MissingExtraError
from facetwalk.zoo.checkpoints import from_safetensors

WEIGHTS = "digits_net.safetensors"
"""Name of the shipped weights within this package; `training.train_digits` writes them."""

_TEST_IMAGES = 500


class DigitsNet(nn.Sequential):
    """Images `(B, 1, 8, 8)` in [0, 1] to logits `(B, 10)`; 1600 ReLUs.

    >>> DigitsNet()(torch.zeros(2, 1, 8, 8)).shape
    torch.Size([2, 10])
    """

    input_shape = (1, 8, 8)

    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(512, 64),
            nn.ReLU(),
            nn.Linear(64, 10),
        )


def digits_net() -> DigitsNet:
    """The shipped network, adversarially trained, in eval mode."""
    content = resources.files("facetwalk.zoo").joinpath(WEIGHTS).read_bytes()
    weights = from_safetensors(content, "the digits network")
    with torch.device("meta"):
        net = DigitsNet()
    net.load_state_dict(weights, assign=True)
    return net.eval()


def digits(split: Literal["train", "test"]) -> tuple[Tensor, Tensor]:
    """Images `(N, 1, 8, 8)` in [0, 1] and labels `(N,)` of scikit-learn's digits.

    The split is always the same: 500 test images, and 1297 to train on.
    """
    if split not in ("train", "test"):
        raise InputError(f"the digits have the splits 'train' and 'test', not {split!r}")
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise MissingExtraError("the digits data", "demo") from error
    data, target = load_digits(return_X_y=True)
    # RandomState's streams are frozen: no numpy version may mix train and test images.
    order = np.random.RandomState(0).permutation(len(data))
    rows = order[:_TEST_IMAGES] if split == "test" else order[_TEST_IMAGES:]
    images = torch.from_numpy(data[rows] / 16).float().reshape(-1, 1, 8, 8)
    return images, torch.from_numpy(target[rows]).long()
