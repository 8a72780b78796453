"""What `attack` found as a table, as arrays and as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
from torch import Tensor

from facetwalk.cli.attack_before import Before
from facetwalk.cli.output import say, say_wrapped, show_table
from facetwalk.robustness import Attack, Finding


def show_attack(found: Attack, before: Before, findings: Sequence[Finding], title: str) -> None:
    """Print what was found; images that were the target already are counted, and then left out."""
    say(title)
    rows = [
        ["images", f"{len(found.success):,}"],
        ["wrong without attack", f"{int((~before.right).sum()):,}"],
    ]
    if before.targets is not None:
        rows.append(["target without attack, left out", f"{int(before.there.sum()):,}"])
    rows += [
        ["success", _mean(found.success, before, ".2%")],
        ["mean margin", _mean(found.margin, before, ".4g")],
        ["mean cross-entropy", _mean(found.loss, before, ".4g")],
        ["gradients an image", _mean(found.gradients, before, ",.0f")],
        ["seconds", f"{found.seconds:,.1f}"],
    ]
    show_table(["", "value"], rows, words=[""])
    doubtful = int(found.depends_on_batch.sum())
    if doubtful:
        say_wrapped(
            f"note: {doubtful} images succeed in a batch and not alone; they count as failures"
        )
    show_findings(findings)


def show_findings(findings: Sequence[Finding]) -> None:
    """Print what makes figures doubtful."""
    for finding in findings:
        say_wrapped(f"note: {finding.words}")


def _mean(column: Tensor, before: Before, form: str) -> str:
    """Over the images that were to be attacked."""
    counted = column.cpu()[~before.there]
    return format(counted.float().mean().item(), form) if len(counted) else "none"


def arrays_of(clean: Tensor, before: Before, found: Attack) -> dict[str, np.ndarray]:
    """The images before and after, and what the model says of them."""
    tensors = {
        "images": clean,
        "adversarial": found.adversarial,
        "labels": before.labels,
        "predicted": found.predicted,
        "success": found.success,
    }
    return {
        name: (tensor.float() if tensor.is_floating_point() else tensor).cpu().numpy()
        for name, tensor in tensors.items()
    }


def as_data(found: Attack, before: Before, findings: Sequence[Finding]) -> dict[str, object]:
    """All of what was found but the images."""
    targets = before.targets
    return {
        "labels": before.labels,
        "target_classes": targets,
        "wrong_without_attack": ~before.right,
        "target_without_attack": None if targets is None else before.there,
        "success": found.success,
        "margin": found.margin,
        "loss": found.loss,
        "predicted": found.predicted,
        "confidence": found.confidence,
        "depends_on_batch": found.depends_on_batch,
        "gradients": found.gradients,
        "seconds": found.seconds,
        "findings": [asdict(finding) for finding in findings],
    }
