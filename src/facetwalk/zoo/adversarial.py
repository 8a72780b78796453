"""Perturbed images, to train classifiers on and to measure them with."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

_CHUNK = 1000


def perturb(
    net: nn.Module, images: Tensor, labels: Tensor, radius: float, steps: int, generator: Generator
) -> Tensor:
    """Images `(B, C, H, W)` in [0, 1] within `radius` that raise the cross-entropy.

    Sign-gradient ascent from a random start; the step decays linearly from `2 * radius`.
    `generator` is on the device of the images.
    """
    low, high = (images - radius).clamp(min=0), (images + radius).clamp(max=1)
    x = low + (high - low) * torch.rand(images.shape, generator=generator, device=images.device)
    for step in range(steps):
        x.requires_grad_()
        (gradient,) = torch.autograd.grad(F.cross_entropy(net(x), labels, reduction="sum"), x)
        size = 2 * radius * (1 - step / steps)
        x = (x.detach() + size * gradient.sign()).clamp(low, high)
    return x


def accuracy(net: nn.Module, images: Tensor, labels: Tensor) -> float:
    """Share of the images `(N, C, H, W)` that `net` gives their labels `(N,)`."""
    with torch.no_grad():
        predicted = torch.cat([net(chunk).argmax(1) for chunk in images.split(_CHUNK)])
    return (predicted == labels).float().mean().item()


def attack_success(
    net: nn.Module,
    images: Tensor,
    labels: Tensor,
    *,
    radius: float,
    steps: int,
    restarts: int,
    generator: Generator,
) -> float:
    """Share of the images `(N, C, H, W)` for which `perturb` finds a misclassified one."""
    fooled = torch.zeros(len(images), dtype=torch.bool, device=images.device)
    for _ in range(restarts):
        x = perturb(net, images, labels, radius, steps, generator)
        with torch.no_grad():
            fooled |= net(x).argmax(1) != labels
    return fooled.float().mean().item()
