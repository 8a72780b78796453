"""Attacks on policies of Procgen's games: the paper's section 6.3, figure 3 (c)."""

from facetwalk.experiments.experiment import Experiment
from facetwalk.experiments.policies.contact_sheet import draw_frames, save_frames
from facetwalk.experiments.policies.planning import Request, plan
from facetwalk.experiments.policies.reporting import ABOUT, comment, draw, tables

POLICIES = Experiment(
    name="policies",
    title="Attacks on policies (the paper's section 6.3)",
    about=ABOUT,
    tables=tables,
    comment=comment,
    draw=draw,
)

__all__ = ["POLICIES", "Request", "draw_frames", "plan", "save_frames"]
