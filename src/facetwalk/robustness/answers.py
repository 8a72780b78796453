"""Whether a model still says what a folder remembers of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from facetwalk.objectives import Margin
from facetwalk.robustness.inputs import logits_of
from facetwalk.robustness.report import Sample
from facetwalk.types import InputError

_ROUNDING, _ROUNDINGS = 1e-2, 8
"""What other devices and batches may change in a margin: a share of the logits' spread, and where
that is more, so many roundings."""


def require_same_answers(
    model: nn.Module,
    images: Tensor,
    labels: Tensor,
    samples: Mapping[int, Sample],
    folder: Path | str,
    rows: int,
) -> None:
    """Raise `InputError` if the model no longer says of images `(N, *shape)` what samples say.

    What a model computes besides its weights shows only in its answers. `samples` are by number,
    and images whose numbers are not among them are left out.
    """
    known = [samples[number] for number in range(len(images)) if number in samples]
    if not known:
        return
    numbers = torch.tensor([sample.index for sample in known], device=images.device)
    logits = logits_of(model, images[numbers], {}, rows)
    margins, best = Margin(labels[numbers])(logits), logits.topk(2).values
    finite = logits[logits.isfinite()]
    share = max(_ROUNDING, _ROUNDINGS * torch.finfo(logits.dtype).eps)
    slack = share * (finite.amax() - finite.amin())
    was = margins.new_tensor([sample.clean_margin for sample in known])
    seen = logits.argmax(1)
    other = ((margins - was).abs() > slack) | (
        (seen != torch.tensor([sample.predicted for sample in known], device=seen.device))
        & (best[:, 0] - best[:, 1] > slack)
    )
    if bool(other.any()):
        b = int(other.nonzero()[0])
        raise InputError(
            f"{folder} holds an evaluation of another model, though of the same weights: there "
            f"image {known[b].index} is class {known[b].predicted} with margin "
            f"{known[b].clean_margin:.3g}, and here class {int(seen[b])} with margin "
            f"{margins[b].item():.3g}; choose another folder, or delete it"
        )
