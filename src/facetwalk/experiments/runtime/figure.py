"""Draws what a step of ADR-GD costs as bars, with the paper's beside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from facetwalk.experiments.adversarial.step_cost import TIMED as VERSIONS
from facetwalk.experiments.drawing import blank_figure
from facetwalk.experiments.experiment import Record
from facetwalk.experiments.runtime.reporting import NAMES, found, theirs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PAPER, _LIMIT = "ADR-GD in the paper", "two gradients"
_COLORS = {VERSIONS[0]: "#f2b680", VERSIONS[1]: "#a6501a", _PAPER: "#cf222e", _LIMIT: "#57606a"}
_BAR = 0.26
_NARROWEST, _GROUP = 4.0, 1.3
"""Inches: all groups of bars at least, and one."""


def draw(records: Sequence[Record]) -> Figure:
    """A group for each network and batch that was measured."""
    shown = [record for record in records if not found(record).left_out]
    room = max(_NARROWEST / _GROUP, len(shown))
    figure = blank_figure(1 + _GROUP * room, 3.6)
    axes: Axes = figure.subplots()
    for place, record in enumerate(shown):
        _group(axes, place, record)
    axes.set_xticks(range(len(shown)), [_name(record) for record in shown], fontsize=8.5)
    axes.set_ylabel("a step of ADR-GD, in steps of PGD", fontsize=9)
    axes.axhline(2, color=_COLORS[_LIMIT], lw=0.8, ls="--", zorder=3)
    axes.tick_params(axis="x", length=0)
    axes.tick_params(axis="y", labelsize=8)
    middle = (len(shown) - 1) / 2
    axes.set_xlim(middle - room / 2, middle + room / 2)
    axes.margins(y=0.1)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    _legend(figure)
    return figure


def _group(axes: Axes, place: int, record: Record) -> None:
    heights, quoted = dict(found(record).ratios), theirs(record)
    if quoted:
        heights[_PAPER] = quoted.ratio
    left = place - _BAR * (len(heights) - 1) / 2
    for number, (name, height) in enumerate(heights.items()):
        bar = axes.bar(left + _BAR * number, height, 0.92 * _BAR, color=_COLORS[name], zorder=2)
        axes.bar_label(bar, fmt="%.1f", fontsize=8, padding=1.5)


def _name(record: Record) -> str:
    data, network = record["network"].split(" ", 1)
    return f"{data}\n{network}\nbatch {record['batch']}"


def _legend(figure: Figure) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Patch | Line2D] = [
        Patch(color=color, label=NAMES.get(name, name))
        for name, color in _COLORS.items()
        if name != _LIMIT
    ]
    handles.append(Line2D([], [], color=_COLORS[_LIMIT], lw=0.8, ls="--", label=_LIMIT))
    figure.legend(handles=handles, loc="outside upper center", ncols=2, fontsize=9, frameon=False)
