"""Draws the toy example: gradient ascent, what gates target, and gates and x step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from facetwalk.experiments.drawing import blank_figure
from facetwalk.experiments.experiment import Record
from facetwalk.experiments.toy.network import TARGET
from facetwalk.experiments.toy.reporting import network_of, walks_of
from facetwalk.experiments.toy.walking import SHORT, SOFTENED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_GREEN, _RED, _BLUE, _GREY, _INK = "#1a7f37", "#cf222e", "#0969da", "#8b96a5", "#24292f"
_GOLD = "#bf8700"
_LOWEST = -1.35
"""Of what is drawn: below it, extensions say nothing."""


def draw(records: Sequence[Record]) -> Figure:
    """Left and middle as in the paper's figure 2; right, gates and x over the steps."""
    figure = blank_figure(12.6, 3.9)
    network = network_of(records)
    if network is None:
        return figure
    left, middle, right = figure.subplots(1, 3, width_ratios=(1, 1, 1.15))
    walks = {(walk["method"], walk["step"]): walk for walk in walks_of(records)}
    gd, adr = walks.get(("GD", str(SHORT))), walks.get((SOFTENED, str(SHORT)))
    _graph(left, network)
    _graph(middle, network)
    left.set_title(f"GD, steps of {SHORT}", fontsize=10)
    middle.set_title(f"what gates see at x; {SOFTENED}", fontsize=10)
    if gd is not None:
        left.plot(gd["x"], gd["value"], "o", color=_GREEN, markersize=4, zorder=4)
    _extensions(middle, network)
    left.set_ylabel("value", fontsize=9)
    if adr is not None:
        middle.plot(adr["x"], adr["value"], "o", color=_RED, markersize=2.6, zorder=4)
        _gates(right, adr, network)
    else:
        right.set_visible(False)
    return figure


def _line(segment: Record, x: float) -> float:
    return segment["intercept"] + segment["slope"] * x


def _graph(axes: Axes, network: Record) -> None:
    """The function, its segments' names, the start and the proven maximum."""
    for segment in network["segments"]:
        ends = segment["low"], segment["high"]
        axes.plot(ends, [_line(segment, x) for x in ends], color=_INK, lw=1.8, zorder=3)
        middle = sum(ends) / 2
        side = -1 if segment["slope"] > 0 else 1
        axes.annotate(
            f"${segment['name'][0]}_{segment['name'][1]}$",
            (middle, _line(segment, middle)),
            (side * 9, 7),
            textcoords="offset points",
            ha="center",
            fontsize=11,
        )
    first, top = network["segments"][0], network["maximum"]
    start = network["start"]
    axes.axvline(start, color=_GREY, lw=0.9, ls=":")
    axes.plot(start, _line(first, start), "s", color=_INK, markersize=5, zorder=5)
    axes.annotate(
        "$x$", (start, _LOWEST), (4, 4), textcoords="offset points", fontsize=11, color=_INK
    )
    axes.plot(top["x"], top["value"], "*", color=_GOLD, markersize=13, zorder=6, clip_on=False)
    axes.set_xlim(-1, 1)
    axes.set_ylim(_LOWEST, 1.45)
    axes.set_xlabel("x", fontsize=9)
    axes.tick_params(labelsize=8)
    for side_name in ("top", "right"):
        axes.spines[side_name].set_visible(False)


def _extensions(axes: Axes, network: Record) -> None:
    """Where each segment's affine function is at the start."""
    start = network["start"]
    for segment in network["segments"][1:]:
        ends = start, segment["low"]
        chosen = segment["name"] == TARGET.name
        color = _RED if chosen else _GREY
        axes.plot(ends, [_line(segment, x) for x in ends], "--", color=color, lw=1.1, zorder=2)
        axes.plot(start, segment["at_start"], "o", mfc="white", mec=color, markersize=6, zorder=5)
        axes.annotate(
            f"${segment['name'][0]}_{segment['name'][1]}(x)$",
            (start, segment["at_start"]),
            (-7, 5 if chosen else -3),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=10,
            color=color if chosen else _INK,
        )


def _gates(axes: Any, walk: Record, network: Record) -> None:
    """Gates above and below one half, and x; the background says on which segment x is."""
    steps = range(len(walk["x"]))
    last = next((t for t in steps if walk["x"][t] >= network["maximum"]["x"]), len(steps) - 1)
    shown = range(min(last + 10, len(steps)))
    shades = ("#ffffff", "#eef1f4", "#e1e5ea", "#fdeeee")
    for segment, shade in zip(network["segments"], shades, strict=True):
        on = [t for t in shown if segment["low"] <= walk["x"][t] <= segment["high"]]
        if on:
            axes.axvspan(on[0] - 0.5, on[-1] + 0.5, color=shade, lw=0, zorder=0)
            name = f"$f_{segment['name'][1]}$"
            axes.text((on[0] + on[-1]) / 2, 1.07, name, ha="center", fontsize=11)
    for number, (name, color) in enumerate((("u", _BLUE), ("v", _GOLD))):
        values = [walk["gates"][t][number] for t in shown]
        axes.plot(shown, values, color=color, lw=1.8, label=f"gate of {name}")
    axes.plot(shown, [walk["x"][t] for t in shown], color=_RED, lw=1.8, label="x")
    axes.axhline(0.5, color=_GREY, lw=0.9, ls=":")
    led = walk["led_at"][0]
    if led is not None:
        axes.plot([led, led], [-1, 1], color=_INK, lw=0.9, ls="--")
        axes.annotate(
            "gates show the pattern of $f_1$",
            (led, -0.85),
            (5, 0),
            textcoords="offset points",
            fontsize=9,
        )
    axes.set_xlim(0, shown[-1])
    axes.set_ylim(-1, 1.2)
    axes.set_xlabel("step", fontsize=9)
    axes.set_title("gates and x; above, the segment on which x is", fontsize=10)
    axes.tick_params(labelsize=8)
    axes.legend(fontsize=9, loc="lower right", framealpha=1, edgecolor="white")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
