"""Draws the demo: digits, what became of them, and the difference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from facetwalk.experiments.attack_figure import Pictures, draw_attack
from facetwalk.experiments.digits_demo import EPS, DemoResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_digits(result: DemoResult) -> Figure:
    """Up to eight digits beside what our default made of them."""
    attack = result.attacks[0]
    confidence, predicted = attack.logits.softmax(1).max(1)
    return draw_attack(
        Pictures(result.images, attack.x, result.labels, predicted, confidence),
        f"No pixel moves by more than {EPS}: digits attacked by {attack.method.name}, "
        f"{result.evaluations} gradients each",
        eps=EPS,
    )
