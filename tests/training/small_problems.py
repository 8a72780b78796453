"""Small networks, images and files that training can be tried on in a second."""

from pathlib import Path

import numpy as np
import torch
from data_files import binary_batches, idx, write_files, write_mnist
from torch import Generator, Tensor, nn

from facetwalk.training import Recipe


class TinyNet(nn.Sequential):
    """Batch norm and dropout, so that the mode and the global random state matter."""

    input_shape = (3, 16, 16)

    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(3, 8, 3, stride=2),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.Flatten(),
            nn.Dropout(0.2),
            nn.Linear(392, 2),
        )


def tiny(**changes) -> Recipe:
    """A recipe for `dark_and_bright`; the test must have registered "tiny"."""
    settings = {
        "name": "tiny",
        "data": "cifar10",
        "architecture": "tiny",
        "radius": 0.1,
        "attack_steps": 3,
        "replays": 2,
        "epochs": 6,
        "batch_size": 50,
        "learning_rate": 1e-2,
    }
    return Recipe(**settings | changes)


def dark_and_bright(count: int, channels: int = 3, side: int = 16) -> tuple[Tensor, Tensor]:
    """Noise around 0.25 or around 0.75: two classes."""
    generator = Generator().manual_seed(0)
    labels = torch.arange(count) % 2
    noise = torch.rand(count, channels, side, side, generator=generator) * 0.4 - 0.2
    return 0.25 + 0.5 * labels[:, None, None, None] + noise, labels


def same_weights(one: nn.Module, other: nn.Module) -> bool:
    ours, theirs = one.state_dict(), other.state_dict()
    return list(ours) == list(theirs) and all(torch.equal(ours[k], theirs[k]) for k in ours)


def mnist_files(folder: Path, count: int = 60) -> Path:
    """Dark zeros and bright ones in MNIST's own files."""
    for prefix in ("train", "t10k"):
        images, labels = dark_and_bright(count, 1, 28)
        pixels = (images[:, 0] * 255).round().numpy().astype(np.uint8)
        write_mnist(folder, prefix, idx(pixels), idx(labels.numpy().astype(np.uint8)), zipped=False)
    return folder


def cifar_files(folder: Path, count: int = 12) -> Path:
    """Dark airplanes and bright automobiles in CIFAR-10's own binary files."""
    images, labels = dark_and_bright(count, 3, 32)
    pixels = (images.flatten(1) * 255).round().numpy().astype(np.uint8)
    records = np.column_stack([labels.numpy().astype(np.uint8), pixels])
    write_files(folder / "cifar-10-batches-bin", binary_batches(records))
    return folder
