"""What is maximised: functions from a network's outputs `(B, ...)` to scores `(B,)`.

Any callable of that kind will do. One that holds data for each problem (labels, targets)
must derive from `Objective` as a dataclass whose tensor fields have a row a problem, so that
rows can be picked when problems are split into chunks or finish early.
"""

from facetwalk.objectives.base import Custom, Objective, as_objective
from facetwalk.objectives.costs import DecisionCost, ExpectedCost, MixedCosts
from facetwalk.objectives.guided import Guided
from facetwalk.objectives.losses import (
    DLR,
    CrossEntropy,
    Margin,
    TargetedCrossEntropy,
    TargetedDLR,
    TargetedMargin,
)
from facetwalk.objectives.mixed import MixedLosses, MixedTargetedLosses
from facetwalk.objectives.outputs import Distance, Linear, Output

__all__ = [
    "DLR",
    "CrossEntropy",
    "Custom",
    "DecisionCost",
    "Distance",
    "ExpectedCost",
    "Guided",
    "Linear",
    "Margin",
    "MixedCosts",
    "MixedLosses",
    "MixedTargetedLosses",
    "Objective",
    "Output",
    "TargetedCrossEntropy",
    "TargetedDLR",
    "TargetedMargin",
    "as_objective",
]
