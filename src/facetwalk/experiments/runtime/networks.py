"""Networks of the paper's sizes as they start: weights do not change what a step costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from facetwalk.experiments.adversarial import networks, paper
from facetwalk.experiments.adversarial.data_sets import DATA_SETS
from facetwalk.experiments.adversarial.networks import Network
from facetwalk.experiments.adversarial.victims import Victim
from facetwalk.sites import SiteSelection
from facetwalk.zoo import ARCHITECTURES, Normalize, SqueezeNet, WideResNet50_2

SEED = 0
_GATES = {network.name: network.gates for network in networks.IMAGENET}


@dataclass(frozen=True)
class Timed:
    """A network, and the images that it would see."""

    name: str
    data: str
    """The name of a data set."""
    make: Callable[[], nn.Module]
    shape: tuple[int, int, int]
    gates: SiteSelection = "all"
    quoted: paper.Cost | None = None
    """What the paper says of it."""

    def victim(self, batch: int, device: str) -> Victim:
        """The network with random weights, before so many images of noise."""
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(SEED)
            model = self.make().eval().requires_grad_(False)
            images = torch.rand(batch, *self.shape)
        network = Network(self.name, False, None, lambda _: model, self.gates)
        labels = torch.zeros(batch, dtype=torch.int64, device=device)
        return Victim(
            DATA_SETS[self.data], network, model.to(device), images.to(device), labels, labels + 1
        )


TIMED = (
    Timed(
        "MNIST CNN",
        "mnist",
        ARCHITECTURES["mnist-cnn"],
        (1, 28, 28),
        quoted=paper.COSTS["mnist"],
    ),
    Timed(
        "CIFAR-10 VGG19",
        "cifar10",
        ARCHITECTURES["cifar-vgg19"],
        (3, 32, 32),
        quoted=paper.COSTS["cifar10"],
    ),
    Timed(
        "ImageNet SqueezeNet 1.1",
        "imagenet",
        lambda: nn.Sequential(Normalize(), SqueezeNet()),
        (3, 224, 224),
        _GATES["squeezenet1_1"],
    ),
    Timed(
        "ImageNet Wide ResNet-50-2",
        "imagenet",
        lambda: nn.Sequential(Normalize(), WideResNet50_2()),
        (3, 224, 224),
        _GATES["wide_resnet50_2"],
        paper.COSTS["imagenet"],
    ),
)
