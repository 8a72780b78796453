"""A network with the images on which it is attacked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from facetwalk.digests import digest
from facetwalk.experiments.adversarial.data_sets import DataSet
from facetwalk.experiments.adversarial.goals import Goal, random_targets
from facetwalk.experiments.adversarial.networks import Network
from facetwalk.spaces import LinfBall
from facetwalk.types import InputError, MissingExtraError

BATCH = 256
"""Images of a pass that only looks."""


@dataclass(frozen=True)
class Victim:
    """Images `(N, C, H, W)`, labels and targets `(N,)`, and the network that sees them."""

    data: DataSet
    network: Network
    model: nn.Module
    images: Tensor
    labels: Tensor
    targets: Tensor

    def goal(self, targeted: bool) -> Goal:
        return Goal(self.labels, self.targets if targeted else None)

    @property
    def space(self) -> LinfBall:
        """The same feasible set for every attack."""
        return LinfBall(self.images, self.data.eps, bounds=(0, 1))

    def logits(self, x: Tensor) -> Tensor:
        """`(N, classes)`, by a fresh pass."""
        with torch.no_grad():
            return torch.cat([self.model(part.clone()) for part in x.split(BATCH)])

    @property
    def made_from(self) -> str:
        return digest([*self.model.state_dict().values(), self.images, self.labels])


def find_victims(
    data: DataSet, images: Path | None, nets: Path | None, count: int | None, device: str
) -> tuple[list[Victim], list[str]]:
    """The networks of a data set that are there, and a sentence for each that is not."""
    try:
        pixels, labels = (part.to(device) for part in data.images(images, count))
    except (InputError, MissingExtraError) as error:
        return [], [f"{data.title} is left out: {error}."]
    found, missing = [], []
    for network in data.networks:
        try:
            model = network.load(nets).to(device).requires_grad_(False)
            model.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        except (InputError, MissingExtraError) as error:
            missing.append(f"{network.name} is left out: {error}.")
            continue
        with torch.no_grad():
            classes = model(pixels[:1].clone()).shape[1]
        targets = random_targets(labels, classes)
        found.append(Victim(data, network, model, pixels, labels, targets))
    return found, missing
