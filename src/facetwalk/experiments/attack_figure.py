"""Draws images beside what an attack made of them, and the difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from facetwalk.experiments.drawing import blank_figure
from facetwalk.types import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 8
_RIGHT, _WRONG = "#1a7f37", "#cf222e"
_GRAY, _DIFFERENCES = "gray_r", "RdBu_r"
_LONG = 14
"""Letters of a title that does not fit above its image."""
_LIGHT = 1.75
"""The colours of differences end so many times farther out, so that they stay light."""


def check_pictures(images: Tensor) -> None:
    """Refuse inputs that cannot be drawn, before the work that a figure would show."""
    if images.ndim != 4 or images.shape[1] not in (1, 3):
        raise InputError(
            "only images (N, 1 or 3, height, width) can be drawn; these inputs have shape "
            f"{tuple(images.shape)}"
        )


@dataclass(frozen=True)
class Pictures:
    """Images `(N, 1 or 3, H, W)` in [0, 1], what became of them, and what the model sees there."""

    images: Tensor
    adversarial: Tensor
    labels: Tensor
    predicted: Tensor
    confidence: Tensor
    targets: Tensor | None = None
    """The classes that the attack was to reach; None where any wrong one would do."""

    def __post_init__(self) -> None:
        check_pictures(self.images)

    @property
    def fooled(self) -> Tensor:
        """Where the attack has succeeded, bool `(N,)`."""
        if self.targets is None:
            return self.predicted != self.labels
        return self.predicted == self.targets

    def chosen(self) -> list[int]:
        """What to show: fooled ones before others, and as many different classes as there are."""
        fooled = self.fooled
        order = sorted(range(len(self.labels)), key=lambda image: not fooled[image])
        seen: dict[int, int] = {}
        rank = {}
        for image in order:
            label = int(self.labels[image])
            rank[image] = (not fooled[image], seen.get(label, 0), label)
            seen[label] = seen.get(label, 0) + 1
        return sorted(order, key=lambda image: rank[image])[:COLUMNS]


def draw_attack(
    pictures: Pictures, title: str, names: Sequence[str] | None = None, eps: float | None = None
) -> Figure:
    """Up to eight images, attacked ones and differences, one below the other; what an attack was
    to reach stands behind an arrow.

    `names` are those of the classes; numbers without. `eps` is where the scale of differences
    ends; the largest one without.
    """
    shown, fooled = pictures.chosen(), pictures.fooled
    figure = blank_figure(10.9, 4.6)
    grid: Any = figure.subplots(3, COLUMNS)
    for axes in grid[:, len(shown) :].flat:
        axes.set_axis_off()
    changes = pictures.adversarial - pictures.images
    end = eps or float(changes.abs().max()) or 1.0
    for column, image in enumerate(shown):
        label = _name(int(pictures.labels[image]), names)
        if pictures.targets is not None:
            label = _with_target(label, _name(int(pictures.targets[image]), names))
        color = _WRONG if fooled[image] else _RIGHT
        guess = _name(int(pictures.predicted[image]), names)
        sure = f"{guess}  ({pictures.confidence[image]:.0%})"
        _show(grid[0, column], _array(pictures.images[image]), label, _RIGHT)
        _show(grid[1, column], _array(pictures.adversarial[image]), sure, color)
        _show_change(grid[2, column], _array(changes[image]), end)
    for row, name in zip(grid[:, 0], ("image", "attacked", "difference"), strict=True):
        row.set_ylabel(name, fontsize=12)
    if shown and pictures.images.shape[1] == 1:
        _add_scale(figure, grid[2], end)
    figure.suptitle(title, fontsize=13)
    return figure


def _name(index: int, names: Sequence[str] | None) -> str:
    return f"{index}" if names is None else names[index]


def _with_target(label: str, target: str) -> str:
    """In two lines where one would be too long."""
    whole = f"{label} → {target}"
    return whole if len(whole) < _LONG else f"{label}\n→ {target}"


def _array(image: Tensor) -> np.ndarray:
    """`(H, W)` or `(H, W, 3)`."""
    array = image.detach().float().cpu().numpy()
    return array[0] if len(array) == 1 else array.transpose(1, 2, 0)


def _show(axes: Axes, image: np.ndarray, title: str, color: str) -> None:
    axes.imshow(image.clip(0, 1), cmap=_GRAY, vmin=0, vmax=1)
    longest = max(map(len, title.splitlines()))
    axes.set_title(title, fontsize=12 if longest < _LONG else 8, color=color)
    _bare(axes)


def _show_change(axes: Axes, change: np.ndarray, end: float) -> None:
    """A change in colours from blue to red; of a colour image, around grey, magnified."""
    if change.ndim == 2:
        axes.imshow(change, cmap=_DIFFERENCES, vmin=-_LIGHT * end, vmax=_LIGHT * end)
    else:
        axes.imshow((0.5 + 0.5 * change / end).clip(0, 1))
    _bare(axes)


def _add_scale(figure: Figure, row: Any, end: float) -> None:
    scale = figure.colorbar(row[0].images[0], ax=row.tolist(), ticks=[-end, 0, end], pad=0.01)
    scale.outline.set_visible(False)  # pyright: ignore[reportAttributeAccessIssue]
    scale.ax.set_ylim(-end, end)
    scale.ax.set_yticklabels([f"{tick:.2g}" for tick in (-end, 0, end)])


def _bare(axes: Axes) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_color("#d0d7de")
