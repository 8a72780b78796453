"""facetwalk: input optimisation of ReLU networks.

Problem(model, objective, space)  --maximize(solver)-->  Result
"""

from facetwalk import (
    control,
    exact,
    normals,
    objectives,
    robustness,
    sites,
    solvers,
    spaces,
    surrogate,
)
from facetwalk.loop import Callback, Step
from facetwalk.maximize import maximize
from facetwalk.problem import Evaluations, Problem, Result, Trace
from facetwalk.recordings import Recordings
from facetwalk.spaces import Box, Intersection, L1Ball, L2Ball, LinfBall, Space
from facetwalk.types import (
    DownloadError,
    FacetwalkError,
    InputError,
    MissingExtraError,
    ModelError,
    NotAffineWarning,
    Status,
)

__version__ = "0.1.0"

__all__ = [
    "Box",
    "Callback",
    "DownloadError",
    "Evaluations",
    "FacetwalkError",
    "InputError",
    "Intersection",
    "L1Ball",
    "L2Ball",
    "LinfBall",
    "MissingExtraError",
    "ModelError",
    "NotAffineWarning",
    "Problem",
    "Recordings",
    "Result",
    "Space",
    "Status",
    "Step",
    "Trace",
    "control",
    "exact",
    "maximize",
    "normals",
    "objectives",
    "robustness",
    "sites",
    "solvers",
    "spaces",
    "surrogate",
]
