"""How steep the gates' sigmoids should be: the paper's appendix A."""

from facetwalk.experiments.experiment import Experiment
from facetwalk.experiments.random_networks import Request
from facetwalk.experiments.sigmoid.comment import comment
from facetwalk.experiments.sigmoid.figure import draw
from facetwalk.experiments.sigmoid.planning import plan
from facetwalk.experiments.sigmoid.table import ABOUT, tables

SIGMOID = Experiment(
    name="sigmoid",
    title="The sigmoid's sharpness (the paper's appendix A)",
    about=ABOUT,
    tables=tables,
    comment=comment,
    draw=draw,
)

__all__ = ["SIGMOID", "Request", "plan"]
