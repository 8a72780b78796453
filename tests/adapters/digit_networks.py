"""Networks around another one, and what is measured at points that were found."""

import torch
from torch import Tensor, nn

RADII = {"inf": 0.2, "2": 0.7, "1": 2.0}
"""Each breaks some of the digits and not all."""
MEAN, STD = 0.1307, 0.3
"""A normalisation after which a pixel of 1 comes back a little larger."""


class Normalised(nn.Module):
    """A network of pixels as a network of normalised images."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, z: Tensor) -> Tensor:
        return self.net(z * STD + MEAN)


class Watched(nn.Module):
    """Remembers in which mode it was at each pass, and how many rows the pass had."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net, self.modes, self.rows = net, set(), []

    def forward(self, x: Tensor) -> Tensor:
        self.modes.add(self.training)
        self.rows.append(len(x))
        return self.net(x)


def partly_training(net: nn.Module) -> nn.Sequential:
    """In train mode, but for the batch norm; in eval mode nearly the network itself."""
    whole = nn.Sequential(nn.BatchNorm2d(1), nn.Dropout(0.5), net).train()
    whole[0].eval()
    return whole


def modes(net: nn.Module) -> list[bool]:
    return [part.training for part in net.modules()]


def wrong(net: nn.Module, points: Tensor, labels: Tensor) -> Tensor:
    """Where the network is wrong, bool `(N,)`."""
    with torch.no_grad():
        return net(points).argmax(1) != labels


def distances(a: Tensor, b: Tensor, norm: str) -> Tensor:
    return torch.linalg.vector_norm((a - b).flatten(1), float(norm), dim=1)


def inside(points: Tensor, images: Tensor, eps: float, norm: str = "inf") -> bool:
    """Whether points are pixels within `eps` of their images, but for rounding."""
    near = distances(points, images, norm) <= eps * (1 + 1e-5)
    return bool(near.all() and (points >= 0).all() and (points <= 1).all())
