"""Classifiers whose worst cases are known, and some that go wrong."""

import torch
from torch import Tensor, nn
from torch.nn.utils import skip_init

DUALS = {"inf": 1, "2": 2, "1": float("inf")}
"""For each norm, the order of the norm that measures how much a linear function can gain."""
NORMS = {"inf": 0.1, "2": 0.2, "1": 0.4}
"""For each norm, an eps at which some images fall and others do not."""
CLEAR = 1e-3
"""Worst cases nearer to zero than this are a matter of rounding."""


class Calls(nn.Module):
    """A function of a classifier and its images, as a classifier."""

    def __init__(self, net: nn.Module, function) -> None:
        super().__init__()
        self.net, self.function = net, function
        self.eval()

    def forward(self, x: Tensor):
        return self.function(self.net, x)


class Counting(nn.Module):
    """Remembers the rows of every pass."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net, self.passes = net, []
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        self.passes.append(x.detach().clone())
        return self.net(x)


def linear(features: int = 5, classes: int = 4, seed: int = 0) -> nn.Linear:
    generator = torch.Generator().manual_seed(seed)
    net = skip_init(nn.Linear, features, classes, dtype=torch.float64).eval()
    for weight in net.parameters():
        weight.data = torch.randn(weight.shape, generator=generator, dtype=torch.float64)
    net.bias.data = 0.2 * net.bias.data - 0.5 * net.weight.data.sum(1)
    return net


def relu_network(features: int = 4, classes: int = 3, seed: int = 0) -> nn.Sequential:
    return nn.Sequential(linear(features, 8, seed), nn.ReLU(), linear(8, classes, seed + 1)).eval()


def batch(net: nn.Module, count: int = 40, features: int = 5, seed: int = 1, wrong: int = 0):
    """Images, and labels that are right except for the first `wrong`."""
    generator = torch.Generator().manual_seed(seed)
    images = torch.rand(count, features, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        logits = net(images)
    labels = logits.argmax(1)
    labels[:wrong] = (labels[:wrong] + 1) % logits.shape[1]
    return images, labels


def gains(net: nn.Linear, images: Tensor, goal: Tensor, away: Tensor, norm: str, eps: float):
    """The largest `logit[goal] - logit[away]` within `eps` of each image, without bounds."""
    weight = net.weight[goal] - net.weight[away]
    at_image = (weight * images).sum(1) + net.bias[goal] - net.bias[away]
    return (at_image + eps * torch.linalg.vector_norm(weight, DUALS[norm], dim=1)).detach()


def worst_margin(net: nn.Linear, images: Tensor, labels: Tensor, norm: str, eps: float) -> Tensor:
    """The largest margin within `eps` of each image of a linear classifier, without bounds."""
    best = torch.full((len(images),), -torch.inf, dtype=torch.float64)
    for other in range(len(net.bias)):
        goal = torch.full_like(labels, other)
        margin = gains(net, images, goal, labels, norm, eps)
        best = torch.where(goal == labels, best, torch.maximum(best, margin))
    return best
