"""The paper's figure 2: on a function of one variable, what gates see and the gradient does not."""

from facetwalk.experiments.experiment import Experiment
from facetwalk.experiments.toy.figure import draw
from facetwalk.experiments.toy.planning import Request, plan
from facetwalk.experiments.toy.reporting import ABOUT, comment, tables

TOY = Experiment(
    name="toy",
    title="What gates target (the paper's figure 2)",
    about=ABOUT,
    tables=tables,
    comment=comment,
    draw=draw,
)

__all__ = ["TOY", "Request", "plan"]
