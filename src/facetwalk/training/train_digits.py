"""Trains the shipped digits network: `python -m facetwalk.training.train_digits`."""

from __future__ import annotations

import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from facetwalk import zoo
from facetwalk.training import perturbing
from facetwalk.training.perturbing import perturb
from facetwalk.types import MissingExtraError
from facetwalk.zoo.digits import WEIGHTS, DigitsNet, digits

TRAINING_RADIUS = 0.15
"""L-infinity radius of the perturbations that the network is trained against."""
ATTACK_RADIUS = 0.2
"""L-infinity radius at which the finished network is attacked."""

_EPOCHS = 80
_BATCH_SIZE = 64
_LEARNING_RATE = 2e-3
_TRAINING_STEPS = 8
_ATTACK_STEPS = 100
_ATTACK_RESTARTS = 5


def train(
    net: nn.Module, images: Tensor, labels: Tensor, epochs: int, generator: Generator
) -> None:
    """Train `net` in place on perturbed images, `(N, 1, 8, 8)`, and their labels, `(N,)`."""
    optimizer = torch.optim.Adam(net.parameters(), _LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for _ in range(epochs):
        for rows in torch.randperm(len(images), generator=generator).split(_BATCH_SIZE):
            x, y = images[rows], labels[rows]
            x = perturb(net, x, y, TRAINING_RADIUS, _TRAINING_STEPS, generator)
            optimizer.zero_grad()
            F.cross_entropy(net(x), y).backward()
            optimizer.step()
        schedule.step()


def train_digits_net(seed: int) -> DigitsNet:
    """A network trained from scratch in under a minute on one core, in eval mode."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = DigitsNet()
    train(net, *digits("train"), _EPOCHS, Generator().manual_seed(seed))
    return net.eval()


def clean_accuracy(net: nn.Module) -> float:
    """Share of the test images that `net` classifies correctly."""
    return perturbing.accuracy(net, *digits("test"))


def attack_success(net: nn.Module) -> float:
    """Share of the test images that are misclassified somewhere within `ATTACK_RADIUS`."""
    return perturbing.attack_success(
        net,
        *digits("test"),
        radius=ATTACK_RADIUS,
        steps=_ATTACK_STEPS,
        restarts=_ATTACK_RESTARTS,
        generator=Generator().manual_seed(0),
    )


def main(folder: Path = Path(zoo.__file__).parent) -> None:
    """Train with seed 0, write the weights to a folder and print what they are worth."""
    try:
        from safetensors.torch import save
    except ImportError as error:
        raise MissingExtraError("saving the digits network", "demo") from error
    start = time.perf_counter()
    net = train_digits_net(seed=0)
    print(f"trained in {time.perf_counter() - start:.0f} s")
    path = folder / WEIGHTS
    path.write_bytes(save(net.state_dict()))
    print(f"wrote {path} ({path.stat().st_size} bytes)")
    print(f"clean accuracy on test images: {clean_accuracy(net):.1%}")
    print(f"attack success at radius {ATTACK_RADIUS}: {attack_success(net):.1%}")


if __name__ == "__main__":
    main()
