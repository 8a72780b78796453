"""What a trained network is worth: accuracy as it is, and under two attacks."""

from __future__ import annotations

import warnings
from typing import Any

from torch import Generator, Tensor, nn

from facetwalk.robustness import RobustnessWarning, evaluate
from facetwalk.training.perturbing import accuracy, attack_success

_ATTACKED_IMAGES = 1000
_PGD_STEPS = 100
_PGD_RESTARTS = 2


def measure(
    net: nn.Module,
    images: Tensor,
    labels: Tensor,
    radius: float,
    budget: int = 300,
    progress: bool = False,
) -> dict[str, Any]:
    """Accuracy on images `(N, C, H, W)` with labels `(N,)`, and robust accuracy on the first 1000.

    `robust_accuracy` is that of `robustness.evaluate` with `budget` gradients an image,
    `pgd_accuracy` that under PGD with 2 starts of 100 steps.

    >>> import torch
    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(4, 10), nn.ReLU(), nn.Linear(10, 10)).eval()
    >>> images = torch.rand(8, 1, 2, 2)
    >>> found = measure(net, images, net(images).argmax(1), radius=0.0, budget=20)
    >>> found["clean_accuracy"], found["robust_accuracy"], found["pgd_accuracy"]
    (1.0, 1.0, 1.0)
    """
    attacked = min(_ATTACKED_IMAGES, len(images))
    some = images[:attacked], labels[:attacked]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RobustnessWarning)  # they are among the findings
        report = evaluate(net, *some, radius, budget=budget, progress=progress)
    success = attack_success(
        net,
        *some,
        radius=radius,
        steps=_PGD_STEPS,
        restarts=_PGD_RESTARTS,
        generator=Generator(images.device).manual_seed(0),
    )
    return {
        "clean_accuracy": accuracy(net, images, labels),
        "test_images": len(images),
        "radius": radius,
        "attacked_images": attacked,
        "robust_accuracy": report.robust_accuracy,
        "budget": budget,
        "mean_gradients": report.mean_gradients,
        "pgd_accuracy": 1 - success,
        "pgd_steps": _PGD_STEPS,
        "pgd_restarts": _PGD_RESTARTS,
        "findings": [finding.words for finding in report.findings],
    }
