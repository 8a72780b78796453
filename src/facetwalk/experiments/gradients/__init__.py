"""The paper's section 4, measured: steps and facets, and gradients that are missed."""

from facetwalk.experiments.experiment import Experiment
from facetwalk.experiments.gradients.figure import draw
from facetwalk.experiments.gradients.planning import Request, plan
from facetwalk.experiments.gradients.reporting import ABOUT, comment, tables

GRADIENTS = Experiment(
    name="gradients",
    title="What input gradients do not see (the paper's section 4)",
    about=ABOUT,
    tables=tables,
    comment=comment,
    draw=draw,
)

__all__ = ["GRADIENTS", "Request", "plan"]
