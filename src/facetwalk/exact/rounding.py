"""What floating-point numbers do to bounds: they round, and overflow."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor

from facetwalk.types import ModelError

ROUNDING = 1e-12
"""Slack, as a share of the sum of the absolute values of all that a bound adds up. It is nine
thousand times the unit of float64: what sums of as many terms lose if every addition rounds the
same way. Bounds of networks with up to 6000 neurons lose less than one unit."""


def check_finite(numbers: Iterable[Tensor]) -> None:
    """Raise `ModelError` unless all numbers that a proof rests on are finite."""
    if not all(bool(part.isfinite().all()) for part in numbers):
        raise ModelError(
            "the network's numbers overflow somewhere in the space, so nothing can be proven of "
            "it: are its weights finite, and the space as large as it was meant to be?"
        )
