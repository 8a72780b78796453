"""Draws the demo: digits, what became of them, and the difference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from facetwalk.experiments.digits_demo import EPS, DemoResult
from facetwalk.experiments.drawing import blank_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS = 8
_RIGHT, _WRONG = "#1a7f37", "#cf222e"
_DIFFERENCES = "RdBu_r"
_REACH = 1.75 * EPS
"""Where the colours of differences end: beyond any difference, so that they stay light."""


def draw_digits(result: DemoResult) -> Figure:
    """Up to eight digits beside what our default made of them."""
    attack = result.attacks[0]
    shown = _chosen(attack.fooled, result.labels)
    confidence, predicted = attack.logits.softmax(1).max(1)
    figure = blank_figure(10.9, 4.6)
    grid: Any = figure.subplots(3, _COLUMNS)
    for axes in grid[:, len(shown) :].flat:
        axes.set_axis_off()
    for column, image in enumerate(shown):
        clean, found = result.images[image, 0].numpy(), attack.x[image, 0].numpy()
        label, guess = int(result.labels[image]), int(predicted[image])
        _show(grid[0, column], clean, f"{label}", _RIGHT)
        color = _WRONG if guess != label else _RIGHT
        _show(grid[1, column], found, f"{guess}  ({confidence[image]:.0%})", color)
        grid[2, column].imshow(found - clean, cmap=_DIFFERENCES, vmin=-_REACH, vmax=_REACH)
        _bare(grid[2, column])
    for row, name in zip(grid[:, 0], ("digit", "attacked", "difference"), strict=True):
        row.set_ylabel(name, fontsize=12)
    scale = figure.colorbar(
        grid[2, 0].images[0], ax=grid[2].tolist(), ticks=[-EPS, 0, EPS], pad=0.01
    )
    scale.outline.set_visible(False)
    scale.ax.set_ylim(-EPS, EPS)
    figure.suptitle(
        f"No pixel moves by more than {EPS}: digits attacked by {attack.method.name}, "
        f"{result.evaluations} gradients each",
        fontsize=13,
    )
    return figure


def _chosen(fooled: Tensor, labels: Tensor) -> list[int]:
    """Images to show: fooled ones before others, and as many different digits as there are."""
    order = sorted(range(len(labels)), key=lambda image: not fooled[image])
    seen: dict[int, int] = {}
    rank = {}
    for image in order:
        label = int(labels[image])
        rank[image] = (not fooled[image], seen.get(label, 0), label)
        seen[label] = seen.get(label, 0) + 1
    return sorted(order, key=lambda image: rank[image])[:_COLUMNS]


def _show(axes: Axes, image: np.ndarray, title: str, color: str) -> None:
    axes.imshow(image, cmap="gray_r", vmin=0, vmax=1)
    axes.set_title(title, fontsize=12, color=color)
    _bare(axes)


def _bare(axes: Axes) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_color("#d0d7de")
