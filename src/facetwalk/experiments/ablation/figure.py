"""Draws how far below the optimum methods stop: against gradients, and on every model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from facetwalk.experiments.ablation.methods import CURVES, ORDER
from facetwalk.experiments.ablation.summary import EQUAL, PROVEN, Summary, optima, summarise
from facetwalk.experiments.drawing import blank_figure
from facetwalk.experiments.experiment import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

_STYLES = {
    "GD": ("#57606a", "o", "-"),
    "Adam": ("#8b96a5", "s", "--"),
    "Adagrad": ("#8b96a5", "^", ":"),
    "Perturbed GD": ("#57606a", "D", "-."),
    "ADR-GD (paper)": ("#e5964f", "o", "-"),
    "ADR-GD (released)": ("#a6501a", "s", "-"),
    "Sign, restarts": ("#0969da", "o", "-"),
    "APGD, restarts": ("#6cb0f2", "^", "--"),
    "ours": ("#1a7f37", "D", "-"),
}
"""Colour, marker and dashes of each curve."""
_MODELS = {"A": ("#0969da", "o"), "B": ("#bf8700", "s"), "C": ("#8250df", "^")}
_OPTIMUM = "#cf222e"
_FINEST = 0.01
"""Percent below which scales are linear; above it they are logarithmic."""
_SCALE = {"linthresh": _FINEST, "linscale": 0.5}
_TICKS = (0, 0.01, 0.1, 1, 10, 100)


def draw(records: Sequence[Record]) -> Figure:
    """Left: gaps to proven optima against gradients; right: to the best values known."""
    summaries, limits = summarise(records), optima(records)
    figure = blank_figure(11.5, 5.4)
    panels: Any = figure.subplots(1, 2, width_ratios=[1.25, 1])
    _draw_curves(panels[0], [each for each in summaries if each.model == PROVEN], limits)
    equal = [each for each in summaries if each.part == EQUAL and each.model != PROVEN]
    _draw_dots(panels[1], equal, limits)
    for axes, side, columns in zip(panels, ("left", "right"), (5, 3), strict=True):
        axes.tick_params(labelsize=8)
        axes.grid(color="#eaeef2")
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        handles, _ = axes.get_legend_handles_labels()
        place: Any = f"outside lower {side}"
        figure.legend(handles=handles, loc=place, ncols=columns, fontsize=8, frameon=False)
    return figure


def _gap(found: Summary, limits: Mapping[str, np.ndarray]) -> np.ndarray:
    """Percent below the optimum, for each seed; 0 for what lies between it and its bound."""
    return np.maximum(0, 100 * (1 - found.shares(limits[found.model])))


def _draw_curves(axes: Axes, shown: Sequence[Summary], limits: Mapping[str, np.ndarray]) -> None:
    for name in CURVES:
        points = sorted((s for s in shown if s.method == name), key=lambda s: s.budget)
        if not points:
            continue
        x = [point.budget for point in points]
        gaps = np.array([_gap(point, limits) for point in points])
        color, marker, dashes = _STYLES[name]
        axes.plot(x, gaps.mean(1), dashes, marker=marker, ms=4, lw=1.4, color=color, label=name)
        axes.fill_between(x, gaps.min(1), gaps.max(1), color=color, alpha=0.12, lw=0)
    axes.axhline(0, color=_OPTIMUM, lw=1.6, label="proven optimum", zorder=1)
    axes.set_xscale("log")
    axes.minorticks_off()
    _tick(axes.xaxis, sorted({each.budget for each in shown}))
    axes.set_yscale("symlog", **_SCALE)
    _tick(axes.yaxis, _TICKS)
    axes.set_ylim(1.2 * max(axes.get_ylim()), -0.3 * _FINEST)
    count = len(limits.get(PROVEN, ()))
    axes.set_title(f"Model A, networks whose optimum is proven: {count}", fontsize=10)
    axes.set_xlabel("gradients", fontsize=9)
    axes.set_ylabel("% below the optimum (band: seeds)", fontsize=9)


def _draw_dots(axes: Axes, shown: Sequence[Summary], limits: Mapping[str, np.ndarray]) -> None:
    names = [name for name in ORDER if any(each.method == name for each in shown)]
    for model, (color, marker) in _MODELS.items():
        found = [each for each in shown if each.model == model]
        if not found:
            continue
        gaps = np.array([_gap(each, limits) for each in found])
        rows = [names.index(each.method) for each in found]
        axes.hlines(rows, gaps.min(1), gaps.max(1), color=color, lw=1.4)
        axes.plot(gaps.mean(1), rows, marker, ms=5, color=color, label=f"Model {model}")
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(max(1, len(names)) - 0.5, -0.5)
    axes.set_xscale("symlog", **_SCALE)
    _tick(axes.xaxis, _TICKS)
    axes.set_xlim(1.2 * max(axes.get_xlim()), -0.3 * _FINEST)
    budget = f" with {shown[0].budget:,} gradients" if shown else ""
    axes.set_title(f"Random networks{budget}", fontsize=10)
    axes.set_xlabel("% below the best value known (bars: seeds)", fontsize=9)


def _tick(axis: Axis, places: Sequence[float]) -> None:
    from matplotlib.ticker import FixedLocator

    axis.set_major_locator(FixedLocator(places))
    axis.set_major_formatter("{x:,g}")
