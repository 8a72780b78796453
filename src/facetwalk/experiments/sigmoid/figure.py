"""Draws the sigmoids, and the values that ADR-GD reaches with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from facetwalk.experiments.drawing import blank_figure
from facetwalk.experiments.experiment import Record
from facetwalk.experiments.sigmoid.planning import ALPHAS, GD, PRESETS
from facetwalk.experiments.sigmoid.summary import Summary, summarise
from facetwalk.surrogate import sigmoid

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SHADES = ("#9ecae1", "#4292c6", "#08519c", "#08306b")
"""Of the sigmoids, the sharpest darkest."""
_COLORS = {"released": "#a6501a", "paper": "#e5964f"}
_GD, _QUOTED = "#57606a", "#cf222e"
_HEIGHT, _PANEL = 3.2, 3.1


def draw(records: Sequence[Record]) -> Figure:
    """Left: s_alpha on [0, 1]; then a panel of values against alpha for each model."""
    summaries = summarise(records)
    models = sorted({each.model for each in summaries})
    figure = blank_figure(_PANEL * (1 + len(models)), _HEIGHT)
    panels: Any = figure.subplots(1, 1 + len(models), squeeze=False)[0]
    _draw_sigmoids(panels[0])
    for axes, model in zip(panels[1:], models, strict=True):
        _draw_values(axes, model, [each for each in summaries if each.model == model])
        if model == models[0]:
            axes.legend(fontsize=8, frameon=False, loc="lower right")
    for axes in panels:
        axes.tick_params(labelsize=8)
        axes.grid(color="#eaeef2")
        axes.set_axisbelow(True)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    return figure


def _draw_sigmoids(axes: Axes) -> None:
    """Points lie close where the sharpest sigmoid rises."""
    near = np.linspace(-0.01, 0.01, 401)
    eta = np.unique(np.concatenate([np.linspace(0, 1, 401), 0.5 + near]))
    for alpha, color in zip(ALPHAS, _SHADES, strict=True):
        gate = sigmoid(torch.from_numpy(eta), float(alpha)).numpy()
        axes.plot(eta, gate, color=color, lw=1.5, label=f"{alpha:,}")
    axes.set_title(r"$s_\alpha(\eta)$", fontsize=11)
    axes.set_xlabel(r"$\eta$", fontsize=9)
    axes.legend(title=r"$\alpha$", fontsize=8, title_fontsize=8, frameon=False, loc="upper left")


def _draw_values(axes: Axes, model: str, shown: Sequence[Summary]) -> None:
    for preset, name in PRESETS.items():
        points = [each for each in shown if each.method == name]
        axes.errorbar(
            [point.alpha for point in points],
            [point.mean for point in points],
            [point.spread for point in points],
            color=_COLORS[preset],
            marker="o",
            ms=4,
            lw=1.4,
            capsize=2,
            label=name,
        )
    for each in shown:
        if each.method == GD:
            axes.axhline(each.mean, color=_GD, lw=1.4, ls="--", label=GD)
    quoted = {each.alpha: each.quoted for each in shown if each.method != GD and each.quoted}
    if quoted:
        x, y = list(quoted), list(quoted.values())
        axes.plot(x, y, "D", color=_QUOTED, ms=4, ls="", label="ADR-GD, the paper says")
    axes.set_xscale("log")
    axes.set_title(f"Model {model}", fontsize=10)
    axes.set_xlabel(r"$\alpha$", fontsize=9)
    axes.set_ylabel("best value, mean", fontsize=9)
