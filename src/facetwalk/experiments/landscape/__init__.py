"""The paper's figure 1: value landscapes, trapped walks and one-sided gradients of 2-D networks."""

from facetwalk.experiments.experiment import Experiment
from facetwalk.experiments.landscape.figure import draw
from facetwalk.experiments.landscape.planning import Request, plan
from facetwalk.experiments.landscape.reporting import ABOUT, comment, tables

LANDSCAPE = Experiment(
    name="landscape",
    title="Landscapes of networks of two inputs (the paper's section 4, figure 1)",
    about=ABOUT,
    tables=tables,
    comment=comment,
    draw=draw,
)

__all__ = ["LANDSCAPE", "Request", "plan"]
