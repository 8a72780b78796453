"""Training with refined actions: the paper's section 6.2, figure 4."""

from facetwalk.experiments.experiment import Experiment
from facetwalk.experiments.rl.planning import Request, plan
from facetwalk.experiments.rl.reporting import ABOUT, comment, draw, tables

RL = Experiment(
    name="rl",
    title="Refined actions in reinforcement learning (the paper's section 6.2)",
    about=ABOUT,
    tables=tables,
    comment=comment,
    draw=draw,
)

__all__ = ["RL", "Request", "plan"]
