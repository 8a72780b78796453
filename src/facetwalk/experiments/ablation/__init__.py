"""The paper's ablation on random networks, with stronger rivals and proven optima."""

from facetwalk.experiments.ablation.comment import comment
from facetwalk.experiments.ablation.figure import draw
from facetwalk.experiments.ablation.planning import plan
from facetwalk.experiments.ablation.table import ABOUT, tables
from facetwalk.experiments.experiment import Experiment
from facetwalk.experiments.random_networks import Request

ABLATION = Experiment(
    name="ablation",
    title="Ablation on random networks (the paper's section 6.4, table 1 (c))",
    about=ABOUT,
    tables=tables,
    comment=comment,
    draw=draw,
)

__all__ = ["ABLATION", "Request", "plan"]
