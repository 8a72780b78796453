"""Draws the paper's figure 1: value landscapes of networks of two inputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from facetwalk.experiments.drawing import blank_figure
from facetwalk.experiments.experiment import Record
from facetwalk.experiments.landscape.networks import read
from facetwalk.experiments.landscape.patterns import grid
from facetwalk.experiments.landscape.reporting import part_of
from facetwalk.experiments.landscape.traps import DRAWN
from facetwalk.experiments.landscape.walks import DEFAULT, GD
from facetwalk.sites import discover

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_GREEN, _RED, _BLUE, _INK, _GOLD = "#1a7f37", "#cf222e", "#0969da", "#24292f", "#ffc83d"
_SIDE, _LEVELS = 241, 18
_LIGHTER = 0.4
"""How far the darkest colour lies above the highest value, in ranges of the values."""
_THIN, _MARKED = 0.8, 2.0
"""Widths of lines: of the first layer's neurons (deeper ones are thinner), and of a marked one."""
_WINDOW = 0.3
"""Half the side of what panel (d) shows."""
_LONGEST = 0.2
"""Of the arrows in panel (d)."""
_COLORS = (_GREEN, _RED, _BLUE)
"""Of the walks: GD and ADR-GD as in the paper, ours."""


def draw(records: Sequence[Record]) -> Figure:
    """Panels (a) to (d) as in the paper; empty where nothing was measured yet."""
    figure = blank_figure(9.6, 9.4)
    panels = figure.subplots(2, 2).flatten()
    patterns, walks, hyperplanes = (
        part_of(records, part) for part in ("patterns", "walks", "hyperplanes")
    )
    pictures = walks["pictures"] if walks else {}
    for axes, letter in zip(panels, "abcd", strict=True):
        axes.set_title(f"({letter})", fontsize=11, pad=10)
        axes.set_xlim(-1, 1)
        axes.set_ylim(-1, 1)
        axes.set_aspect("equal")
        axes.tick_params(labelsize=8)
    if patterns:
        _landscape(panels[0], patterns)
        _maximum(panels[0], patterns)
        panels[0].set_title(
            f"(a) {len(patterns['shares'])} polytopes of 3 neurons", fontsize=11, pad=10
        )
    if "b" in pictures:
        _walks(panels[1], pictures["b"])
    if "c" in pictures:
        _trap(panels[2], pictures["c"])
    if hyperplanes and hyperplanes["picture"]:
        _two_sides(panels[3], hyperplanes["picture"])
    return figure


def _landscape(
    axes: Axes,
    picture: Record,
    center: Sequence[float] = (0.0, 0.0),
    reach: float = 1.0,
    marked: int | None = None,
) -> None:
    """Values as filled contours; the inputs at which each neuron is zero as lines, one marked."""
    network = read(picture["weights"])
    points = torch.tensor(center, dtype=torch.float64) + reach * grid(_SIDE)
    sites = discover(network, points)
    with torch.no_grad():
        values, seen = sites.pre_activations(points)
    x, y, f = (each.view(_SIDE, _SIDE).numpy() for each in (points[:, 0], points[:, 1], values))
    lightest, darkest = f.min(), f.max() + _LIGHTER * (f.max() - f.min())
    axes.contourf(x, y, f, _LEVELS, cmap="Purples", vmin=lightest, vmax=darkest)
    depths = [depth for depth, h in enumerate(seen) for _ in range(h.shape[1])]
    for number, neuron in enumerate(sites.join(seen).T):
        width = _MARKED if number == marked else _THIN / (1 + depths[number])
        level = neuron.reshape(_SIDE, _SIDE).numpy()
        if level.min() < 0 < level.max():
            axes.contour(x, y, level, [0.0], colors=[_INK], linewidths=width)


def _maximum(axes: Axes, picture: Record) -> None:
    axes.plot(
        *picture["highest"]["x"],
        "*",
        color=_GOLD,
        mec=_INK,
        mew=0.8,
        markersize=17,
        zorder=6,
        clip_on=False,
        label="maximum, proven",
    )


def _start(axes: Axes, picture: Record) -> None:
    axes.plot(*picture["start"], "s", color="white", mec=_INK, markersize=6, zorder=7)


def _legend(axes: Axes) -> None:
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.05), "ncols": 2}
    axes.legend(fontsize=8, frameon=False, markerscale=0.75, **place)


def _walks(axes: Axes, picture: Record) -> None:
    """The walks of GD, ADR-GD and ours from the same start."""
    _landscape(axes, picture)
    for method, color in zip(DRAWN, _COLORS, strict=True):
        x, y = zip(*picture["paths"][method.name], strict=True)
        axes.plot(x, y, "-", color=color, lw=1.3, alpha=0.9, zorder=4, label=method.name)
        best = picture["walks"][method.name]["best_x"]
        style = {"mec": "white", "markersize": 7, "zorder": 7, "clip_on": False}
        axes.plot(*best, "o", color=color, **style)
    _maximum(axes, picture)
    _start(axes, picture)
    axes.set_title("(b) walks from one start; dots: the best points", fontsize=11, pad=10)
    _legend(axes)


def _trap(axes: Axes, picture: Record) -> None:
    """The steps of GD around a local maximum, and where our default ends."""
    _landscape(axes, picture)
    x, y = zip(*picture["paths"][GD.name], strict=True)
    axes.plot(x, y, "o", color=_GREEN, markersize=3.2, zorder=4, label=GD.name)
    local = picture["local"]
    label = f"local maximum{', certified' if local['certified'] else ''}"
    axes.plot(*local["x"], "o", color="black", markersize=6, zorder=6, label=label)
    ours = picture["walks"][DEFAULT.name]["best_x"]
    style = {"mec": "white", "markersize": 6, "zorder": 7, "clip_on": False}
    axes.plot(*ours, "D", color=_BLUE, label=DEFAULT.name, **style)
    _maximum(axes, picture)
    _start(axes, picture)
    axes.set_title("(c) GD trapped", fontsize=11, pad=10)
    _legend(axes)


def _two_sides(axes: Axes, picture: Record) -> None:
    """Both one-sided gradients at a point of a hyperplane."""
    _landscape(axes, picture, picture["x"], _WINDOW, picture["neuron"])
    x, y = picture["x"]
    longest = max(math.hypot(*picture[key]) for key in ("minus", "plus"))
    for key, color, label in (
        ("minus", _GREEN, r"$\nabla^-$, neuron dead: what torch gives"),
        ("plus", _RED, r"$\nabla^+$, neuron alive"),
    ):
        dx, dy = (_LONGEST * g / longest for g in picture[key])
        axes.annotate(
            "",
            (x + dx, y + dy),
            (x, y),
            arrowprops={"arrowstyle": "-|>", "color": color, "lw": 2.4, "shrinkA": 0, "shrinkB": 0},
            zorder=6,
        )
        axes.plot([], [], color=color, lw=2.4, label=label)
    axes.plot(x, y, "o", color="black", markersize=6, zorder=7)
    axes.set_xlim(x - _WINDOW, x + _WINDOW)
    axes.set_ylim(y - _WINDOW, y + _WINDOW)
    axes.set_title("(d) a point on a hyperplane", fontsize=11, pad=10)
    _legend(axes)
