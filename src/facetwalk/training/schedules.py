"""How the learning rate and the radius change in the course of training."""

from __future__ import annotations

_WARM_UP = 0.2
"""Share of the training in which the learning rate rises; then it falls to zero."""
_RAMP = 1 / 3
"""Share in which the radius grows; at full radius from the start small networks stay constant."""


def rate_factor(done: float) -> float:
    """The learning rate, as a share of its highest, once a share `done` of training is over.

    >>> [rate_factor(done) for done in (0.1, 0.2, 0.6)]
    [0.5, 1.0, 0.5]
    """
    return min(done / _WARM_UP, (1 - done) / (1 - _WARM_UP))


def radius_factor(done: float) -> float:
    """The radius, as a share of the full one, once a share `done` of training is over.

    >>> [radius_factor(done) for done in (0, 1 / 6, 1 / 3, 1)]
    [0.0, 0.5, 1, 1]
    """
    return min(1, done / _RAMP)
