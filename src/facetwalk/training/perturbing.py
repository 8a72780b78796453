"""Perturbed images, to train classifiers on and to measure them with."""

from __future__ import annotations

import torch
from torch import Generator, Tensor, nn

from facetwalk.training.loss_gradients import LossGradient, loss_gradient

_CHUNK = 1000
_SINGLE_STEP = 1.25
"""Of Wong et al. (2020), in radii: more than 1, so that most pixels end on the ball's surface."""


def perturb(
    net: nn.Module,
    images: Tensor,
    labels: Tensor,
    radius: float,
    steps: int,
    generator: Generator,
    gradient: LossGradient = loss_gradient,
) -> Tensor:
    """Images `(B, C, H, W)` in [0, 1] within `radius` that raise the cross-entropy.

    Sign-gradient ascent from a random start; the step decays linearly from `2 * radius`.
    `generator` is on the device of the images.

    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    >>> images, labels = torch.full((3, 1, 2, 2), 0.5), torch.tensor([0, 1, 0])
    >>> x = perturb(net, images, labels, 0.1, 5, Generator().manual_seed(0))
    >>> bool(((x - images).abs() - 0.1).abs().max() < 1e-6)  # a linear network: corners
    True
    """
    low, high = (images - radius).clamp(min=0), (images + radius).clamp(max=1)
    x = low + (high - low) * torch.rand(images.shape, generator=generator, device=images.device)
    for step in range(steps):
        size = 2 * radius * (1 - step / steps)
        x = (x + size * gradient(net, x, labels).sign()).clamp(low, high)
    return x


def perturb_once(
    net: nn.Module,
    images: Tensor,
    labels: Tensor,
    radius: float,
    generator: Generator,
    gradient: LossGradient = loss_gradient,
) -> Tensor:
    """As `perturb`, by one step of 1.25 radii from a random point of the ball.

    Without the random start, networks learn to answer this one step and nothing else.

    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    >>> x = perturb_once(net, torch.rand(3, 1, 2, 2), torch.tensor([0, 1, 0]), 0.1, Generator())
    >>> x.shape
    torch.Size([3, 1, 2, 2])
    """
    low, high = (images - radius).clamp(min=0), (images + radius).clamp(max=1)
    noise = torch.rand(images.shape, generator=generator, device=images.device)
    x = (images + radius * (2 * noise - 1)).clamp(0, 1)
    return (x + _SINGLE_STEP * radius * gradient(net, x, labels).sign()).clamp(low, high)


def accuracy(net: nn.Module, images: Tensor, labels: Tensor) -> float:
    """Share of the images `(N, C, H, W)` that `net` gives their labels `(N,)`.

    >>> accuracy(nn.Flatten(), torch.eye(3)[:, :, None, None], torch.tensor([0, 1, 2]))
    1.0
    """
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
    """Share of the images `(N, C, H, W)` for which `perturb` finds a misclassified one.

    >>> images, labels = torch.tensor([[0.5, 0.4], [0.9, 0.1]])[:, :, None, None], torch.zeros(2)
    >>> options = {"radius": 0.1, "steps": 5, "restarts": 1, "generator": Generator()}
    >>> attack_success(nn.Flatten(), images, labels.long(), **options)
    0.5
    """
    fooled = torch.zeros(len(images), dtype=torch.bool, device=images.device)
    for _ in range(restarts):
        x = perturb(net, images, labels, radius, steps, generator)
        with torch.no_grad():
            fooled |= net(x).argmax(1) != labels
    return fooled.float().mean().item()
