"""Adversarial examples: points near images at which a classifier is wrong."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from facetwalk.maximize import maximize
from facetwalk.messages import reason
from facetwalk.models import untouched_random_state
from facetwalk.objectives import Margin, Objective, TargetedMargin
from facetwalk.problem import Problem
from facetwalk.robustness.inputs import (
    as_classes,
    as_images,
    as_rows,
    as_seeds,
    logits_of,
    outputs_of,
    require_classifier,
    require_gradient,
)
from facetwalk.robustness.rechecking import fooled_alone
from facetwalk.robustness.surroundings import Surroundings
from facetwalk.solvers import Auto, Method
from facetwalk.spaces import Bounds
from facetwalk.types import FacetwalkError, ModelError, whole_number

_EXACT = (torch.float32, torch.float64)
"""What losses and probabilities are counted in."""


@dataclass(frozen=True)
class Attack:
    """What `attack` found; every tensor has a row for each image."""

    adversarial: Tensor
    """The point with the largest margin that was found, `(N, *shape)`; the image itself where it
    needed no attack."""
    success: Tensor
    """Whether the model is wrong there (for a targeted attack: says the target), seen in a batch
    and alone; bool `(N,)`."""
    margin: Tensor
    """How far it is wrong: the best wrong logit minus the true one, or the target's minus the best
    other; `(N,)`."""
    loss: Tensor
    """The cross-entropy there, against the labels or the targets; `(N,)`."""
    predicted: Tensor
    """The class that the model sees there, `(N,)`."""
    confidence: Tensor
    """The probability that it gives this class, `(N,)`."""
    depends_on_batch: Tensor
    """Where the model is wrong in a batch and right alone, also after a second attack that went
    for the largest margin: no success; bool `(N,)`."""
    gradients: Tensor
    """Gradient evaluations that each image took, `(N,)`."""
    seconds: float


@torch.inference_mode(False)
def attack(
    model: nn.Module,
    images: Tensor,
    labels: Tensor,
    eps: float,
    *,
    targets: Tensor | None = None,
    norm: str | float = "inf",
    bounds: Bounds | None = (0.0, 1.0),
    budget: int = 1000,
    solver: Method | Auto | None = None,
    seed: int | Tensor = 0,
    batch_size: int | None = None,
    progress: bool = False,
) -> Attack:
    """Look for points within `eps` of images at which a classifier is wrong.

    Args:
        model: from images `(N, *shape)` to logits `(N, classes)`, in eval mode.
        images: floats `(N, *shape)`, any shape.
        labels: true classes, `(N,)`.
        eps: how far a point may be from its image; for a model in 16 bits from the image rounded to
            them, so that it may be farther from yours by what rounding has moved it.
        targets: classes that the model should see instead, `(N,)`; any wrong one without.
        norm: in which `eps` is measured: "inf", "2" or "1", also written "Linf", "L2" or "L1", or
            a number.
        bounds: of every pixel; None for no bounds.
        budget: gradient evaluations of each image.
        solver: another method than the default, with a budget of its own.
        seed: image b uses `seed + b`; or seeds, one for each image, int64 `(N,)`.
        batch_size: most rows at once; as many as memory holds without.
        progress: whether to show a progress bar.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 3)).eval()
    >>> found = attack(model, torch.rand(5, 1, 2, 2), torch.zeros(5, dtype=torch.long), eps=0.5)
    >>> found.adversarial.shape, found.success.dtype
    (torch.Size([5, 1, 2, 2]), torch.bool)
    """
    began = time.perf_counter()
    require_classifier(model)
    where = Surroundings.of(eps, norm, bounds)
    rows_at_once = as_rows(batch_size)
    if solver is None:
        solver = Auto(evaluations=whole_number("budget", budget, at_least=1))
    images = as_images(images, model, bounds)
    labels = as_classes(labels, len(images), images.device, "labels")
    goals = labels
    if targets is not None:
        goals = as_classes(targets, len(images), images.device, "targets")
    wanted: Objective = Margin(labels) if targets is None else TargetedMargin(goals)
    seeds = as_seeds(seed, len(images), images.device)
    x, gradients = images.clone(), torch.zeros(len(images), dtype=torch.int64)

    def climb(rows: Tensor, stop_at: float | None) -> None:
        if not len(rows):
            return
        require_gradient(model, images[rows[:2]])
        try:
            result = maximize(
                Problem(model, wanted.select(rows), where.around(images[rows])),
                solver=solver,
                seed=seeds[rows],
                x0="sample",
                batch_size=batch_size,
                stop_at=stop_at,
                progress=progress,
            )
        except (FacetwalkError, torch.OutOfMemoryError):
            raise
        except Exception as error:
            raise ModelError(
                f"the model fails at a point within {where.eps:g} of an image: {reason(error)}"
            ) from error
        x[rows] = result.x
        gradients[rows.cpu()] += result.evaluations.backward

    with untouched_random_state(images.device):
        classes = {"labels": labels, "targets": goals}
        left = _not_yet_there(model, images, wanted, classes, rows_at_once)
        climb(left, torch.finfo(images.dtype).tiny)
        found = _judged(model, x, wanted, goals, gradients, rows_at_once, began)
        doubtful = found.depends_on_batch.nonzero().squeeze(1)
        if not len(doubtful):
            return found
        climb(doubtful, None)  # as far as it goes: a larger margin holds alone too
        return _judged(model, x, wanted, goals, gradients, rows_at_once, began)


def _not_yet_there(
    model: nn.Module,
    images: Tensor,
    wanted: Objective,
    classes: dict[str, Tensor],
    rows_at_once: int,
) -> Tensor:
    """The rows, int64, of images that need an attack."""
    if not len(images):
        return torch.zeros(0, dtype=torch.int64, device=images.device)
    logits = logits_of(model, images, classes, rows_at_once)
    return (wanted(logits) <= 0).nonzero().squeeze(1)


def _judged(
    model: nn.Module,
    x: Tensor,
    wanted: Objective,
    goals: Tensor,
    gradients: Tensor,
    rows_at_once: int,
    began: float,
) -> Attack:
    """What fresh passes say of the points that were found."""
    outputs = outputs_of(model, x, rows_at_once) if len(x) else x.new_zeros(0, 2)
    margin = wanted(outputs) if len(x) else x.new_zeros(0)
    in_batch = margin > 0
    success = fooled_alone(model, x, wanted, in_batch)
    exactly = outputs if outputs.dtype in _EXACT else outputs.float()
    return Attack(
        adversarial=x,
        success=success,
        margin=margin,
        loss=F.cross_entropy(exactly, goals, reduction="none"),
        predicted=outputs.argmax(1),
        confidence=exactly.softmax(1).amax(1),
        depends_on_batch=in_batch & ~success,
        gradients=gradients,
        seconds=time.perf_counter() - began,
    )
