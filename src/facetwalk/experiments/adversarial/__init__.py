"""Adversarial examples for image classifiers: the paper's section 6.1, with stronger rivals."""

from facetwalk.experiments.adversarial.comment import comment
from facetwalk.experiments.adversarial.figure import draw
from facetwalk.experiments.adversarial.planning import Request, plan
from facetwalk.experiments.adversarial.table import ABOUT, tables
from facetwalk.experiments.experiment import Experiment

ADVERSARIAL = Experiment(
    name="adversarial",
    title="Adversarial optimisation (the paper's section 6.1)",
    about=ABOUT,
    tables=tables,
    comment=comment,
    draw=draw,
)

__all__ = ["ADVERSARIAL", "Request", "plan"]
