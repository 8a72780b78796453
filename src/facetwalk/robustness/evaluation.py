"""How robust a classifier is: the worst case over attacks, image by image."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from facetwalk.digests import digest
from facetwalk.models import untouched_random_state
from facetwalk.objectives import Margin
from facetwalk.progress import progress_report
from facetwalk.robustness.attacking import attack
from facetwalk.robustness.checks import Finding, RobustnessWarning, check
from facetwalk.robustness.inputs import (
    Images,
    Surroundings,
    as_classes,
    as_images,
    logits_of,
)
from facetwalk.robustness.records import Records
from facetwalk.robustness.report import Report, Sample
from facetwalk.solvers import Auto, Method
from facetwalk.spaces import Bounds
from facetwalk.types import InputError

_CHUNK = 256
"""Images that are attacked, and remembered, together."""


def evaluate(
    model: nn.Module,
    images: Images,
    labels: Tensor,
    eps: float,
    *,
    norm: str | float = "inf",
    bounds: Bounds | None = (0.0, 1.0),
    budget: int = 1000,
    attacks: Mapping[str, Method | Auto] | None = None,
    seed: int = 0,
    folder: Path | str | None = None,
    chunk: int = _CHUNK,
    progress: bool = False,
) -> Report:
    """Accuracy and robust accuracy of a classifier, with a record of every image.

    An image counts as robust if it is classified correctly and every attack fails; each attack
    only sees what those before it left. Results do not depend on `chunk`.

    Args:
        model: from images `(N, *shape)` to logits `(N, classes)`, in eval mode.
        images: floats `(N, *shape)`, or anything that gives them when it is sliced.
        labels: true classes, `(N,)`.
        eps, norm, bounds: as for `attack`.
        budget: gradient evaluations of each image, for the default attack.
        attacks: other attacks by name, in their order, with budgets of their own.
        seed: image b uses `seed + b`.
        folder: where to remember what is done; an evaluation that was interrupted goes on there.
        chunk: images that are attacked, and remembered, together.
        progress: whether to show a progress bar.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)).eval()
    >>> images = torch.rand(6, 1, 2, 2)
    >>> report = evaluate(model, images, model(images).argmax(1), eps=0.05, budget=100)
    >>> report.accuracy, len(report.samples)
    (1.0, 6)
    """
    began = time.perf_counter()
    where = Surroundings.of(eps, norm, bounds)
    stages = {"default": Auto(evaluations=budget)} if attacks is None else dict(attacks)
    if not stages or "clean" in stages:
        raise InputError('attacks needs at least one, and none may be called "clean"')
    if chunk < 1:
        raise InputError(f"chunk must be at least 1; it is {chunk}")
    count = len(images)
    classes = as_classes(labels, count, torch.device("cpu"), "labels")
    first = images[:_CHUNK] if count else None
    findings = [] if first is None else _findings(model, first, classes, bounds)
    for finding in findings:
        warnings.warn(finding.words, RobustnessWarning, stacklevel=2)
    asked = {
        "eps": where.eps,
        "norm": where.norm,
        "bounds": repr(bounds),
        "attacks": [f"{name}: {stage!r}" for name, stage in stages.items()],
        "seed": seed,
        "images": count,
        "first image": digest([] if first is None else [first[0]]),
        "labels": digest([classes]),
        "model": digest([*model.parameters(), *model.buffers()]),
    }
    records = None if folder is None else Records(folder, asked)
    done = {} if records is None else dict(records.samples)
    with progress_report(progress, "evaluate") as report:
        for start in range(0, count, chunk):
            numbers = [n for n in range(start, min(start + chunk, count)) if n not in done]
            if numbers:
                part = as_images(images[start : start + chunk], model, bounds)
                some = part[torch.tensor(numbers, device=part.device) - start]
                samples = _attacked(model, some, classes[numbers], where, stages, seed, numbers)
                done |= {sample.index: sample for sample in samples}
                if records is not None:
                    records.add(samples)
            report(min(1.0, (start + chunk) / count), f"{len(done)} of {count} images")
    ordered = [done[number] for number in range(count)]
    return Report(ordered, findings, time.perf_counter() - began)


def _findings(
    model: nn.Module, first: Tensor, classes: Tensor, bounds: Bounds | None
) -> list[Finding]:
    """What the first images say; raises for labels of later ones too."""
    findings = check(model, first, classes[: len(first)], bounds)
    some = as_images(first[:1], model, bounds)
    with untouched_random_state(some.device):
        logits_of(model, some, {"labels": classes.to(some.device)})
    return findings


def _attacked(
    model: nn.Module,
    images: Tensor,
    labels: Tensor,
    where: Surroundings,
    stages: Mapping[str, Method | Auto],
    seed: int,
    numbers: list[int],
) -> list[Sample]:
    """The samples of some images, whose numbers in the data these are."""
    labels = labels.to(images.device)
    with untouched_random_state(images.device):
        logits = logits_of(model, images, {"labels": labels})
    predicted, margin = logits.argmax(1), Margin(labels)(logits)
    broken_by: list[str | None] = ["clean" if wrong else None for wrong in predicted != labels]
    seen, gradients = predicted.clone(), torch.zeros(len(images), dtype=torch.int64)
    depends_on_batch = torch.zeros_like(labels, dtype=torch.bool)
    seeds = seed + torch.tensor(numbers)
    for name, solver in stages.items():
        left = torch.tensor([i for i, by in enumerate(broken_by) if by is None], dtype=torch.int64)
        if not len(left):
            break
        rows = left.to(images.device)
        found = attack(
            model,
            images[rows],
            labels[rows],
            where.eps,
            norm=where.norm,
            bounds=where.bounds,
            solver=solver,
            seed=seeds[left],
        )
        better = found.margin > margin[rows]
        margin[rows] = torch.where(better, found.margin, margin[rows])
        seen[rows] = torch.where(better, found.predicted, seen[rows])
        gradients[left] += found.gradients
        depends_on_batch[rows] = (depends_on_batch[rows] | found.depends_on_batch) & ~found.success
        for i, success in zip(left.tolist(), found.success.tolist(), strict=True):
            broken_by[i] = name if success else None
    columns = (labels, predicted, margin, seen, gradients, depends_on_batch)
    return [
        Sample(number, label, said, by, value, there, spent, depends)
        for number, by, label, said, value, there, spent, depends in zip(
            numbers, broken_by, *(column.tolist() for column in columns), strict=True
        )
    ]
