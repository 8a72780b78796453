"""What `attack` found as a table, as arrays and as data."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from facetwalk.cli.output import say, show_table
from facetwalk.robustness import Attack


def show_attack(found: Attack, right: Tensor, title: str) -> None:
    """Print what was found; `right` is where the model was without an attack, bool `(N,)`."""
    say(title)
    count = len(found.success)
    rows = [
        ["images", f"{count:,}"],
        ["wrong without attack", f"{int((~right).sum()):,}"],
        ["success", f"{found.success.float().mean().item():.2%}"],
        ["mean margin", f"{found.margin.mean().item():.4g}"],
        ["mean cross-entropy", f"{found.loss.mean().item():.4g}"],
        ["gradients an image", f"{found.gradients.float().mean().item():,.0f}"],
        ["seconds", f"{found.seconds:,.1f}"],
    ]
    show_table(["", "value"], rows, words=[""])
    doubtful = int(found.depends_on_batch.sum())
    if doubtful:
        say(f"note: {doubtful} images succeed in a batch and not alone; they count as failures")


def arrays_of(clean: Tensor, labels: Tensor, found: Attack) -> dict[str, np.ndarray]:
    """The images before and after, and what the model says of them."""
    tensors = {
        "images": clean,
        "adversarial": found.adversarial,
        "labels": labels,
        "predicted": found.predicted,
        "success": found.success,
    }
    return {
        name: (tensor.float() if tensor.is_floating_point() else tensor).cpu().numpy()
        for name, tensor in tensors.items()
    }


def as_data(found: Attack, right: Tensor) -> dict[str, object]:
    """All of what was found but the images."""
    return {
        "wrong_without_attack": (~right).tolist(),
        "success": found.success.tolist(),
        "margin": found.margin.tolist(),
        "loss": found.loss.tolist(),
        "predicted": found.predicted.tolist(),
        "depends_on_batch": found.depends_on_batch.tolist(),
        "gradients": found.gradients.tolist(),
        "seconds": found.seconds,
    }
