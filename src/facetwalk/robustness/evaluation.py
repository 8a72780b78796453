"""How robust a classifier is: the worst case over attacks, image by image."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from facetwalk.models import untouched_random_state
from facetwalk.progress import progress_report
from facetwalk.robustness.answers import require_same_answers
from facetwalk.robustness.checks import RobustnessWarning, check
from facetwalk.robustness.inputs import (
    Images,
    as_classes,
    as_images,
    as_rows,
    as_seed,
    logits_of,
)
from facetwalk.robustness.question import Question, as_attacks
from facetwalk.robustness.records import Records
from facetwalk.robustness.report import Report
from facetwalk.robustness.surroundings import Surroundings
from facetwalk.robustness.worst_cases import worst_cases
from facetwalk.solvers import Auto, Method
from facetwalk.spaces import Bounds
from facetwalk.types import InputError, whole_number

_CHUNK = 256
"""Images that are attacked, and remembered, together; and those at the beginning that are looked at
before."""
_UNSTEADY = {"randomised", "batch"}
"""Findings of models whose answers change from pass to pass."""


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
    batch_size: int | None = None,
    progress: bool = False,
) -> Report:
    """Accuracy and robust accuracy of a classifier, with a record of every image.

    An image counts as robust if it is classified correctly and every attack fails; each attack
    only sees what those before it left. But for rounding, results do not depend on `chunk` and
    `batch_size`.

    Args:
        model: from images `(N, *shape)` to logits `(N, classes)`, in eval mode.
        images: floats `(N, *shape)`, or anything that gives them when it is sliced.
        labels: true classes, `(N,)`.
        eps, norm, bounds: as for `attack`.
        budget: gradient evaluations of each image, for the default attack.
        attacks: other attacks by name, in their order, with budgets of their own.
        seed: image b uses `seed + b`.
        folder: where to remember what is done; an evaluation that was interrupted goes on there. A
            folder of other images or of another model is refused; of images that are read when they
            are sliced, only the first 256 and the number are compared.
        chunk: images that are attacked, and remembered, together.
        batch_size: most rows at once; as many as memory holds without.
        progress: whether to show a progress bar.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)).eval()
    >>> images = torch.rand(6, 1, 2, 2)
    >>> report = evaluate(model, images, model(images).argmax(1), eps=0.05, budget=100)
    >>> report.accuracy, len(report.samples)
    (1.0, 6)
    """
    began = time.perf_counter()
    question = Question(
        model, Surroundings.of(eps, norm, bounds), as_attacks(attacks, budget), as_seed(seed)
    )
    chunk, rows = whole_number("chunk", chunk, at_least=1), as_rows(batch_size)
    count = _count(images)
    classes = as_classes(labels, count, torch.device("cpu"), "labels")
    if not count:
        return Report([], [], time.perf_counter() - began)
    given = images[:_CHUNK]
    findings = check(model, given, classes[: len(given)], bounds, batch_size)
    for finding in findings:
        warnings.warn(finding.words, RobustnessWarning, stacklevel=2)
    first = as_images(given, model, bounds)
    classes = classes.to(first.device)
    with untouched_random_state(first.device):
        logits_of(model, first[:1], {"labels": classes})
        records, done = None, {}
        if folder is not None:
            records = Records(folder, question.in_plain_values(images, first, classes))
            done = dict(records.samples)
            if not _UNSTEADY & {finding.name for finding in findings}:
                require_same_answers(model, first, classes, done, folder, rows)
    with progress_report(progress, "evaluate") as report:
        for start in range(0, count, chunk):
            numbers = range(start, min(start + chunk, count))
            if not done.keys() >= set(numbers):
                part = as_images(images[start : numbers.stop], model, bounds)
                found = worst_cases(
                    question, part, classes[start : numbers.stop], numbers, batch_size
                )
                missing = [sample for sample in found if sample.index not in done]
                done |= {sample.index: sample for sample in missing}
                if records is not None:
                    records.add(missing)
            report(numbers.stop / count, f"{len(done)} of {count} images")
    ordered = [done[number] for number in range(count)]
    return Report(ordered, findings, time.perf_counter() - began)


def _count(images: Images) -> int:
    try:
        count = len(images)
    except TypeError:
        count = None
    if count is None or not hasattr(images, "__getitem__"):
        raise InputError(
            "images must be a tensor (N, *shape), or anything that has a length and gives one when "
            "it is sliced"
        )
    return count
