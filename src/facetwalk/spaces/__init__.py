"""Feasible sets: boxes, balls with bounds, and intersections, one for each problem of a batch.

To write a space of your own, derive a frozen dataclass from `Space`. Its tensor fields have
one row a problem (or one row for all), and it defines `shape`, `center`, `radius` and
`project`; the rest has defaults.
"""

from facetwalk.spaces.balls import BALLS, L1Ball, L2Ball, LinfBall
from facetwalk.spaces.base import Space
from facetwalk.spaces.bounds import Bounds
from facetwalk.spaces.box import Box
from facetwalk.spaces.intersection import Intersection

__all__ = ["BALLS", "Bounds", "Box", "Intersection", "L1Ball", "L2Ball", "LinfBall", "Space"]
