"""What a step of ADR-GD costs beside one of PGD: the paper's table 1 (a)."""

from facetwalk.experiments.experiment import Experiment
from facetwalk.experiments.runtime.figure import draw
from facetwalk.experiments.runtime.planning import Request, plan
from facetwalk.experiments.runtime.reporting import ABOUT, comment, tables

RUNTIME = Experiment(
    name="runtime",
    title="What a step costs (the paper's table 1 (a))",
    about=ABOUT,
    tables=tables,
    comment=comment,
    draw=draw,
)

__all__ = ["RUNTIME", "Request", "plan"]
