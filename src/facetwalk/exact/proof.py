"""What is known of a maximum: a point below, a bound above, and how both came about."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from torch import Tensor

from facetwalk.exact.live_line import Report, short_count
from facetwalk.types import ModelError

_SECONDS_BETWEEN_POINTS = 0.5
_NEARLY = 1 - 1e-6
"""The share of the gap that is used, so that rounding cannot make a difference larger than it."""

_ROUNDING = 1e-5
"""By how much, as a share, a value may be above a bound that rounding has lowered."""


@dataclass(frozen=True)
class Proof:
    """The maximum lies between `value` and `bound`."""

    x: Tensor
    """The best point found, inside the space: float64 `(*shape)`."""
    value: float
    """The objective at `x`, evaluated anew in float64."""
    bound: float
    """No point of the space has a larger value."""
    proven: bool
    """Whether `bound - value` is at most the gap that was asked for."""
    engine: str
    """`"boxes"` or `"milp"`."""
    nodes: int
    """Boxes bounded, or nodes of the branch-and-bound tree of the MILP."""
    seconds: float
    trace: tuple[tuple[float, float, float], ...]
    """`(seconds, value, bound)` as time went by."""


@dataclass
class Search:
    """What an engine knows so far, and when it has to end."""

    x: Tensor
    """The best point, `(inputs,)` in float64."""
    value: float
    bound: float
    gap: float
    threshold: float | None
    """It is enough to know on which side of this number the maximum lies."""
    evaluate: Callable[[Tensor], Tensor]
    """Points `(B, inputs)` to the objective, `(B,)`."""
    began: float
    deadline: float
    report: Report
    nodes: int = 0
    trace: list[tuple[float, float, float]] = field(default_factory=list)

    @property
    def late(self) -> bool:
        return time.perf_counter() > self.deadline

    @property
    def over(self) -> bool:
        """Whether there is nothing left to find out, or no time to."""
        return self.done or self.late

    @property
    def left(self) -> float:
        """Seconds."""
        return max(0.0, self.deadline - time.perf_counter())

    @property
    def aim(self) -> float:
        """A bound no larger than this ends the search."""
        aim = self.value + _NEARLY * self.gap
        return aim if self.threshold is None else max(aim, self.threshold)

    @property
    def done(self) -> bool:
        over = self.threshold is not None and self.value > self.threshold
        return over or self.bound <= self.aim

    def offer(self, points: Tensor) -> None:
        """Take the best of some points of the space, `(B, inputs)`, if it beats the one so far."""
        values = self.evaluate(points)
        best = int(values.argmax())
        if values[best].item() > self.value:
            self.x, self.value = points[best].clone(), values[best].item()
            self._check(self.bound)

    def _check(self, bound: float) -> None:
        """A value above a bound shows that the bound is one of another network."""
        if self.value > bound + _ROUNDING * max(1.0, abs(self.value)):
            raise ModelError(
                f"the network reaches {self.value:.6g}, above the {bound:.6g} that was proven of "
                "it as it is at one input: what it computes depends on the data in other ways than "
                "by its ReLUs, and cannot be bounded"
            )

    def note(self, bound: float, nodes: int) -> None:
        """Remember a bound on the maximum, and tell whoever watches."""
        self._check(bound)
        self.bound, self.nodes = max(self.value, min(self.bound, bound)), nodes
        seconds = time.perf_counter() - self.began
        if not self.trace or seconds - self.trace[-1][0] > _SECONDS_BETWEEN_POINTS:
            self.trace.append((seconds, self.value, self.bound))
        self.say(
            f"bound {self.bound:.5g}, gap {self.bound - self.value:.2g}, {short_count(nodes)} nodes"
        )

    def say(self, text: str) -> None:
        """Tell whoever watches the best value, and what more there is to tell."""
        self.report(f"best {self.value:.5g}, {text}")
