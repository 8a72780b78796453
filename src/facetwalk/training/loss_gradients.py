"""Gradients of the cross-entropy in the images; on a GPU from a recording."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from facetwalk.replay import recorded

LossGradient = Callable[[nn.Module, Tensor, Tensor], Tensor]
"""`(net, images (B, C, H, W), labels (B,)) -> gradient of the summed loss, as the images`."""


def loss_gradient(net: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """The gradient in the images `(B, C, H, W)` of their cross-entropy with labels `(B,)`.

    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    >>> loss_gradient(net, torch.rand(3, 1, 2, 2), torch.tensor([0, 1, 0])).shape
    torch.Size([3, 1, 2, 2])
    """
    with torch.enable_grad():
        x = images.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(F.cross_entropy(net(x), labels, reduction="sum"), x)
    return gradient


class RecordedGradient:
    """`loss_gradient` of one network, whose weights may change in place from call to call.

    On a GPU batches of the same shape replay one recording, since launching the kernels of a deep
    network takes longer than running them. The next call overwrites what this one returned.

    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    >>> images, labels = torch.rand(3, 1, 2, 2), torch.tensor([0, 1, 0])
    >>> torch.equal(RecordedGradient()(net, images, labels), loss_gradient(net, images, labels))
    True
    """

    def __init__(self) -> None:
        self._recordings: dict[tuple[torch.Size, bool], _Recording] = {}

    def __call__(self, net: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
        if not images.is_cuda:
            return loss_gradient(net, images, labels)
        kind = (images.shape, net.training)
        if kind not in self._recordings:
            self._recordings[kind] = _Recording(net, images, labels)
        return self._recordings[kind].replayed(images, labels)


class _Recording:
    def __init__(self, net: nn.Module, images: Tensor, labels: Tensor) -> None:
        self.net, self.images, self.labels = net, images.clone(), labels.clone()
        self.gradient = torch.empty_like(self.images)
        self.again = recorded(self._work, images.device)

    def replayed(self, images: Tensor, labels: Tensor) -> Tensor:
        self.images.copy_(images)
        self.labels.copy_(labels)
        self.again()
        return self.gradient

    def _work(self) -> None:
        with _uncached_autocast(self.images.device.type):
            self.gradient.copy_(loss_gradient(self.net, self.images, self.labels))


def _uncached_autocast(device: str) -> torch.autocast:
    """Autocast as it is, but weights are cast anew: a recording must not keep old ones."""
    dtype, enabled = torch.get_autocast_dtype(device), torch.is_autocast_enabled(device)
    return torch.autocast(device, dtype, enabled, cache_enabled=False)
