"""What would make a robustness figure wrong, looked for before it is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from facetwalk.models import untouched_random_state
from facetwalk.objectives import CrossEntropy
from facetwalk.robustness.inputs import (
    as_classes,
    as_images,
    as_rows,
    logits_of,
    outputs_of,
    require_classifier,
    require_gradient,
)
from facetwalk.spaces import Bounds

_MOST_IMAGES = 64
"""Images that the checks look at."""
_FEW_IMAGES = 8
"""Fewer images say nothing about accuracy."""
_ROUNDING = 1e-3
"""Differences of logits that rounding may make, as a share of their spread."""
_MANY = 0.1
"""Share of images from which on a finding is worth a word."""


class RobustnessWarning(UserWarning):
    """Something about a classifier makes attacks weaker than they should be."""


@dataclass(frozen=True)
class Finding:
    """Something that makes a robustness figure doubtful."""

    name: str
    """A short name: `randomised`, `batch`, `softmax`, `zero-gradients`, `nan-gradients` or
    `accuracy`."""
    words: str
    """What is wrong and what to do."""


@torch.inference_mode(False)
def check(
    model: nn.Module,
    images: Tensor,
    labels: Tensor,
    bounds: Bounds | None = (0.0, 1.0),
    batch_size: int | None = None,
) -> list[Finding]:
    """What makes robustness figures of this classifier doubtful; nothing, where all is well.

    Looks at the first 64 images, at most `batch_size` at once. What makes any figure impossible
    (train mode, NaN, labels that do not fit, images outside the bounds) is an error instead.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.Softmax(1)).eval()
    >>> found = check(model, torch.rand(5, 1, 2, 2), torch.tensor([0, 1, 2, 0, 1]))
    >>> [finding.name for finding in found]
    ['softmax']
    """
    require_classifier(model)
    rows = as_rows(batch_size)
    everyone = as_images(images, model, bounds)
    classes = as_classes(labels, len(everyone), everyone.device, "labels")
    if not len(everyone):
        return []
    with untouched_random_state(everyone.device):
        return _found(model, everyone[:_MOST_IMAGES], classes, rows)


def _found(model: nn.Module, some: Tensor, labels: Tensor, rows: int) -> list[Finding]:
    logits, classes = logits_of(model, some, {"labels": labels}, rows), labels[: len(some)]
    require_gradient(model, some[:2])
    gradients = _gradients(model, some, classes, rows)
    looks: list[Callable[[], Iterator[Finding]]] = [
        lambda: _is_randomised(model, some, logits, rows),
        lambda: _mixes_rows(model, some, logits, rows),
        lambda: _has_softmax(logits),
        lambda: _has_no_gradient(gradients),
        lambda: _has_no_finite_gradient(gradients),
        lambda: _is_no_better_than_chance(logits, classes),
    ]
    return [finding for look in looks for finding in look()]


def _differ(a: Tensor, b: Tensor) -> bool:
    spread = (a.amax() - a.amin()).clamp_min(torch.finfo(a.dtype).tiny)
    return bool(((a - b).abs() > _ROUNDING * spread).any())


def _is_randomised(
    model: nn.Module, images: Tensor, logits: Tensor, rows: int
) -> Iterator[Finding]:
    if _differ(logits, outputs_of(model, images, rows)):
        yield Finding(
            "randomised",
            "the model gives other outputs for the same images: gradients are noisy and success "
            "is a matter of luck; attack its mean over several passes instead",
        )


def _mixes_rows(model: nn.Module, images: Tensor, logits: Tensor, rows: int) -> Iterator[Finding]:
    if len(images) < 2 or _differ(logits, outputs_of(model, images, rows)):
        return
    if _differ(logits[:1], outputs_of(model, images[:1])):
        yield Finding(
            "batch",
            "an image's outputs depend on the others in its batch: the model mixes rows, and what "
            "fools it in a batch need not fool it alone",
        )


def _has_softmax(logits: Tensor) -> Iterator[Finding]:
    sums = logits.sum(1)
    if bool((logits >= 0).all()) and bool(((sums - 1).abs() < 1e-2).all()):
        yield Finding(
            "softmax",
            "the outputs are probabilities, not logits: a softmax rounds to 0 and 1 and hides "
            "gradients; pass the model without its last softmax",
        )


def _gradients(model: nn.Module, images: Tensor, labels: Tensor, rows: int) -> Tensor:
    """Of the cross-entropy, as autograd gives them, with what is not finite, `(N, pixels)`."""
    found: list[Tensor] = []
    for part, classes in zip(images.split(rows), labels.split(rows), strict=True):
        leaf = part.detach().requires_grad_()
        with torch.enable_grad():
            losses = CrossEntropy(classes)(model(leaf.clone()))
            found += torch.autograd.grad(losses.sum(), leaf)
    return torch.cat(found).flatten(1)


def _has_no_gradient(gradients: Tensor) -> Iterator[Finding]:
    share = (gradients == 0).all(1).float().mean().item()
    if share > _MANY:
        yield Finding(
            "zero-gradients",
            f"for {share:.0%} of the images the gradient of the cross-entropy is exactly zero: it "
            "is saturated in this precision or the model masks it; attacks on the margin may still "
            "work, in double precision the others too",
        )


def _has_no_finite_gradient(gradients: Tensor) -> Iterator[Finding]:
    broken = int((~gradients.isfinite()).any(1).sum())
    if broken:
        yield Finding(
            "nan-gradients",
            f"for {broken} of {len(gradients)} images some of the gradient of the cross-entropy is "
            "NaN or infinite, and attacks cannot follow it there: look for a root, a norm, a "
            "logarithm or a division at zero (add a small number to what it is taken of), and for "
            "a torch.where one side of which is NaN",
        )


def _is_no_better_than_chance(logits: Tensor, labels: Tensor) -> Iterator[Finding]:
    accuracy = (logits.argmax(1) == labels).float().mean().item()
    chance = 1 / logits.shape[1]
    if len(labels) >= _FEW_IMAGES and accuracy <= min(1.5 * chance, chance + 0.05):
        yield Finding(
            "accuracy",
            f"the model is right on {accuracy:.0%} of the images, and guessing is right on "
            f"{chance:.0%}: labels or preprocessing are likely not those it was trained with",
        )
