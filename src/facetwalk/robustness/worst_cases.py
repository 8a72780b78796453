"""The worst case of each image over several attacks."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from facetwalk.models import untouched_random_state
from facetwalk.objectives import Margin
from facetwalk.robustness.attacking import attack
from facetwalk.robustness.inputs import as_rows, logits_of
from facetwalk.robustness.question import Question
from facetwalk.robustness.report import Sample


def worst_cases(
    question: Question,
    images: Tensor,
    labels: Tensor,
    numbers: Sequence[int],
    batch_size: int | None,
) -> list[Sample]:
    """The samples of images `(N, *shape)` with labels `(N,)`; their numbers in the data are these.

    >>> from torch import nn
    >>> from facetwalk.robustness.surroundings import Surroundings
    >>> from facetwalk.solvers import Sign
    >>> where = Surroundings.of(0.1, "inf", (0, 1))
    >>> question = Question(nn.Linear(4, 3).eval(), where, {"sign": Sign(steps=5)}, seed=0)
    >>> samples = worst_cases(question, torch.rand(2, 4), torch.tensor([0, 1]), [7, 8], None)
    >>> [sample.index for sample in samples]
    [7, 8]
    """
    model, where = question.model, question.where
    with untouched_random_state(images.device):
        logits = logits_of(model, images, {"labels": labels}, as_rows(batch_size))
    predicted, clean_margin = logits.argmax(1), Margin(labels)(logits)
    broken_by: list[str | None] = ["clean" if wrong else None for wrong in predicted != labels]
    seen, margin = predicted.clone(), clean_margin.clone()
    gradients = torch.zeros(len(images), dtype=torch.int64)
    depends_on_batch = torch.zeros_like(labels, dtype=torch.bool)
    seeds = question.seed + torch.tensor(numbers)
    for name, solver in question.attacks.items():
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
            batch_size=batch_size,
        )
        better = found.margin > margin[rows]
        margin[rows] = torch.where(better, found.margin, margin[rows])
        seen[rows] = torch.where(better, found.predicted, seen[rows])
        gradients[left] += found.gradients
        depends_on_batch[rows] = (depends_on_batch[rows] | found.depends_on_batch) & ~found.success
        for i, success in zip(left.tolist(), found.success.tolist(), strict=True):
            broken_by[i] = name if success else None
    columns = (
        numbers,
        labels.tolist(),
        predicted.tolist(),
        clean_margin.tolist(),
        broken_by,
        margin.tolist(),
        seen.tolist(),
        gradients.tolist(),
        depends_on_batch.tolist(),
    )
    return [Sample(*values) for values in zip(*columns, strict=True)]
