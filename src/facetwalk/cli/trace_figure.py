"""Draws how the best value rose."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from facetwalk import Result
from facetwalk.experiments.drawing import blank_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_NAMED = 8
"""Problems beyond this number get no entry in the legend."""


def draw_trace(result: Result, solver: str) -> Figure:
    """Best value so far against gradient evaluations, a line a problem."""
    if result.trace is None:
        raise ValueError("the result was made without a trace")
    figure = blank_figure(6.4, 4.0)
    axes = figure.add_subplot()
    best = result.trace.best.cpu().double()
    shown = torch.where(torch.isfinite(best), best, torch.nan)
    problems = len(shown)
    for problem, values in enumerate(shown.tolist()):
        axes.plot(
            result.trace.evaluations.tolist(),
            values,
            label=f"problem {problem}",
            linewidth=1.8 if problems <= _MOST_NAMED else 0.8,
        )
    if 1 < problems <= _MOST_NAMED:
        axes.legend(frameon=False)
    axes.set_xlabel("gradient evaluations of each start")
    axes.set_ylabel("best value so far")
    axes.set_title(solver)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
