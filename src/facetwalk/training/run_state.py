"""A training under way: everything that decides how it goes on."""

from __future__ import annotations

from typing import Any

import torch
from torch import Generator, Tensor, nn

from facetwalk.training.methods import METHODS
from facetwalk.training.recipe import Recipe
from facetwalk.zoo import fresh_net

_MOMENTUM = 0.9
_WEIGHT_DECAY = 5e-4


class RunState:
    """Network, optimizer, random numbers and history of a training on one device.

    >>> from facetwalk.training import recipe_of
    >>> run = RunState(recipe_of("mnist-natural"), torch.device("cpu"))
    >>> run.restore(run.snapshot())
    >>> len(run.history)
    0
    """

    def __init__(self, recipe: Recipe, device: torch.device) -> None:
        self.net = fresh_net(recipe.architecture, recipe.seed).to(device)
        if recipe.data == "cifar10":
            self.net.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        self.optimizer = _optimizer(recipe, self.net)
        self.generator = Generator(device).manual_seed(recipe.seed)
        self.dropout = default_generator(device)
        self.method = METHODS[recipe.method](recipe, self.generator)
        self.history: list[dict[str, float]] = []
        """Mean loss and accuracy of each pass over the data, on the images that it trained on."""
        self.seconds = 0.0

    def snapshot(self) -> dict[str, Any]:
        """All of this, in what `torch.load(weights_only=True)` reads."""
        return {
            "net": self.net.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "generator": self.generator.get_state(),
            "dropout": self.dropout.get_state(),
            "noise": self.method.noise,
            "history": self.history,
            "seconds": self.seconds,
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go on where the snapshot was made; the default generator of the device is set too."""
        self.net.load_state_dict(snapshot["net"])
        self.optimizer.load_state_dict(snapshot["optimizer"])
        self.generator.set_state(snapshot["generator"])
        self.dropout.set_state(snapshot["dropout"])
        noise: Tensor | None = snapshot["noise"]
        self.method.noise = None if noise is None else noise.to(self.generator.device)
        self.history = list(snapshot["history"])
        self.seconds = snapshot["seconds"]


def default_generator(device: torch.device) -> Generator:
    """The one that layers such as dropout draw from.

    >>> default_generator(torch.device("cpu")) is torch.default_generator
    True
    """
    if device.type == "cuda":
        return torch.cuda.default_generators[device.index]
    return torch.default_generator


def _optimizer(recipe: Recipe, net: nn.Module) -> torch.optim.Optimizer:
    if recipe.optimizer == "adam":
        return torch.optim.Adam(net.parameters(), recipe.learning_rate, fused=True)
    return torch.optim.SGD(
        net.parameters(),
        recipe.learning_rate,
        momentum=_MOMENTUM,
        weight_decay=_WEIGHT_DECAY,
        nesterov=True,
    )
