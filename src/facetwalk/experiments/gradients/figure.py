"""Draws how far steps go beyond facets, how many neurons they flip, and what they miss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from facetwalk.experiments.drawing import blank_figure
from facetwalk.experiments.experiment import Record
from facetwalk.experiments.gradients.measuring import QUANTILES
from facetwalk.experiments.gradients.reporting import mean_of
from facetwalk.experiments.gradients.walks import NAMES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLORS = (
    "#0969da",
    "#8250df",
    "#24292f",
    "#1a7f37",
    "#7cb342",
    "#e07b39",
    "#bf8700",
    "#cf222e",
)
_DASHES = ("-", "--")
"""In turn, so that curves differ by more than their colour."""
_LOW, _MEDIAN, _HIGH = (QUANTILES.index(share) for share in (0.25, 0.5, 0.75))
_BARS = {
    "leave their polytope": ("left", "#8b96a5"),
    "lose": ("lost", "#f2b680"),
    "miss the better gradient": ("missed_any", "#cf222e"),
}
"""What bars show: a field of the records, and a colour."""
_INK = "#24292f"


def draw(records: Sequence[Record]) -> Figure:
    """A column for each method, step by step; in the last one, shares of steps."""
    figure = blank_figure(13.0, 7.4)
    if not records:
        return figure
    models = list(dict.fromkeys(record["model"] for record in records))
    grid = figure.subplots(2, 3, width_ratios=(1, 1, 1.1))
    for column, method in enumerate(NAMES):
        ratio, flips, shares = grid[0, column], grid[1, column], grid[column, 2]
        shown = [record for record in records if record["method"] == method]
        for record in shown:
            style = _style(models.index(record["model"]))
            _ratios(ratio, record, style)
            flips.plot(*_known(record["flips_by_step"]), lw=1.4, **style)
        ratio.axhline(1, color=_INK, lw=0.9, ls=":")
        for axes in (ratio, flips):
            _logarithmic(axes)
            axes.set_xlabel("step", fontsize=9)
        _shares(shares, shown, models)
        ratio.set_title(f"{method}: step / alpha*, median and quartiles", fontsize=10)
        flips.set_title(f"{method}: neurons that flip in a step, mean", fontsize=10)
        shares.set_title(f"{method}: steps that", fontsize=10, pad=20)
    for axes in grid.flatten():
        axes.tick_params(labelsize=8)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    _legend(figure, models)
    return figure


def _logarithmic(axes: Axes) -> None:
    """With plain numbers on the axis."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _plain(value)))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def _known(values: Sequence[float | None]) -> tuple[list[int], list[float]]:
    """The positions, counted from 1, at which there is a number, and these numbers."""
    found = [(t, value) for t, value in enumerate(values, 1) if value is not None]
    return [t for t, _ in found], [value for _, value in found]


def _style(number: int) -> dict[str, Any]:
    """Of the curves of a model."""
    return {"color": _COLORS[number % len(_COLORS)], "ls": _DASHES[number % len(_DASHES)]}


def _ratios(axes: Axes, record: Record, style: dict[str, Any]) -> None:
    """The median of each block of steps, at its middle, and a band between the quartiles."""
    rows, block = record["ratio_by_block"], record["block"]
    low, median, high = (_known([row[k] for row in rows]) for k in (_LOW, _MEDIAN, _HIGH))
    middles = [block * (number - 0.5) + 0.5 for number in median[0]]
    axes.plot(middles, median[1], lw=1.4, **style)
    axes.fill_between(middles, low[1], high[1], color=style["color"], alpha=0.12, lw=0)


def _shares(axes: Axes, shown: Sequence[Record], models: Sequence[str]) -> None:
    """Bars for each model, the first at the top."""
    from matplotlib.patches import Patch

    height = 0.8 / len(_BARS)
    for record in shown:
        for number, (name, color) in enumerate(_BARS.values()):
            share = 100 * mean_of(record[name])
            y = models.index(record["model"]) + height * (number - 1)
            bars = axes.barh(y, share, 0.9 * height, color=color)
            axes.bar_label(bars, fmt="%.0f", fontsize=7, padding=2)
    axes.set_yticks(range(len(models)), models)
    axes.set_ylim(len(models) - 0.5, -0.5)
    axes.set_xlim(0, 112)
    axes.set_xticks(range(0, 101, 25))
    axes.set_xlabel("%", fontsize=9)
    handles = [Patch(color=color, label=words) for words, (_, color) in _BARS.items()]
    place = {"loc": "lower center", "bbox_to_anchor": (0.5, 0.99), "ncols": len(handles)}
    axes.legend(handles=handles, fontsize=8, frameon=False, **place)


def _legend(figure: Figure, models: Sequence[str]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], lw=2, label=model, **_style(number)) for number, model in enumerate(models)
    ]
    place = {"loc": "outside upper center", "ncols": len(handles)}
    figure.legend(handles=handles, fontsize=9, frameon=False, **place)
