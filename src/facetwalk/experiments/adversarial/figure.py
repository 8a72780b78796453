"""Draws success rates and mean objectives as grouped bars, like the paper's figure 3 (a, b)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from facetwalk.experiments.adversarial import paper
from facetwalk.experiments.adversarial.attacks import ORDER
from facetwalk.experiments.adversarial.summary import Summary, summarise
from facetwalk.experiments.drawing import blank_figure
from facetwalk.experiments.experiment import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLORS = {
    "FGSM": "#c9ced6",
    "PGD (paper)": "#8b96a5",
    "PGD (strong)": "#57606a",
    "APGD": "#24292f",
    "ADR-GD (paper)": "#f2b680",
    "ADR-GD (margin)": "#e07b39",
    "ADR-GD (released)": "#a6501a",
    "AutoAttack": "#8fb8de",
    "ours": "#1a7f37",
}
_QUOTED = "#cf222e"
_GREY, _PINK = "#f4f5f6", "#fdf0f2"
"""Behind untargeted and targeted attacks, as in the paper."""
_NARROWEST, _GROUP, _ROW, _ENTRY = 7.0, 1.4, 2.2, 1.75
"""Inches: the whole figure at least, one network, one row, an entry of the legend."""
_BAR = 0.8 / len(ORDER)
_PADDING, _DIAMOND = 2.0, 4.0
"""Points: below a number, and the size of a diamond."""
_NUMBER = 16.0
"""Points that a number takes at most; on the scale of success each is about a percent."""


def draw(records: Sequence[Record]) -> Figure:
    """Rows: success and objective, untargeted and targeted; columns: natural and robust.

    Empty where no attack has finished yet.
    """
    summaries = summarise(records)
    if not summaries:
        return blank_figure(_NARROWEST, _ROW)
    columns = [
        (words, models)
        for words, robust in (("natural", False), ("robust", True))
        if (models := list(dict.fromkeys(s.model for s in summaries if s.robust == robust)))
    ]
    goals = [goal for goal in (False, True) if any(each.targeted == goal for each in summaries)]
    panels = [(measure, goal) for measure in ("success", "objective") for goal in goals]
    groups = sum(len(models) for _, models in columns)
    width = max(_NARROWEST, 1 + _GROUP * groups)
    figure = blank_figure(width, 0.7 + _ROW * len(panels))
    grid: Any = figure.subplots(
        len(panels),
        len(columns),
        squeeze=False,
        width_ratios=[len(models) for _, models in columns],
    )
    for row, (measure, goal) in enumerate(panels):
        for column, (words, models) in enumerate(columns):
            axes = grid[row, column]
            shown = [s for s in summaries if s.targeted == goal and s.model in models]
            _panel(axes, shown, models, measure)
            axes.set_facecolor(_PINK if goal else _GREY)
            axes.tick_params(axis="x", length=0, labelbottom=row == len(panels) - 1)
            if row == 0:
                axes.set_title(f"{words} training", fontsize=11)
            if column == 0:
                axes.set_ylabel(_label(measure, goal), fontsize=9.5)
    figure.align_ylabels()
    _legend(figure, summaries)
    return figure


def _label(measure: str, targeted: bool) -> str:
    goal = "targeted" if targeted else "untargeted"
    if measure == "success":
        return f"{goal}\nsuccess, %"
    return f"{goal}\nmean J = " + ("-CE(target)" if targeted else "CE(label)")


def _panel(axes: Axes, shown: Sequence[Summary], models: Sequence[str], measure: str) -> None:
    names = [name for name in ORDER if any(each.attack == name for each in shown)]
    left = -_BAR * (len(names) - 1) / 2
    scale = 100 if measure == "success" else 1
    for each in shown:
        x = models.index(each.model) + left + _BAR * names.index(each.attack)
        height = scale * getattr(each, measure)
        axes.bar(x, height, 0.92 * _BAR, color=_COLORS[each.attack], zorder=2)
        quoted = paper.SUCCESS.get((each.model, each.attack))
        if measure == "success" and not each.targeted and quoted is not None:
            axes.plot(x, 100 * quoted, "D", color=_QUOTED, markersize=_DIAMOND, zorder=3)
            _write_beside(axes, x, height, 100 * quoted)
        else:
            _write(axes, x, height, _number(height, measure), _PADDING)
    axes.set_xticks(range(len(models)), models, fontsize=8.5)
    axes.set_xlim(-0.5, len(models) - 0.5)
    axes.tick_params(axis="y", labelsize=8)
    axes.grid(axis="y", color="white", zorder=0)
    axes.margins(y=0.14 if measure == "success" else 0.2)
    if measure == "success":
        axes.set_ylim(0, 115)
        axes.set_yticks(range(0, 101, 25))
    for side in axes.spines.values():
        side.set_visible(False)


def _write_beside(axes: Axes, x: float, height: float, quoted: float) -> None:
    """Where a diamond would lie on a bar's number, the number stands above the diamond."""
    number = _number(height, "success")
    if -_DIAMOND <= quoted - height <= _NUMBER:
        _write(axes, x, max(height, quoted), number, _PADDING + _DIAMOND)
    else:
        _write(axes, x, height, number, _PADDING)


def _write(axes: Axes, x: float, y: float, number: str, padding: float) -> None:
    """Upright, or it would be too wide; below a bar that hangs down."""
    side = -1 if y < 0 else 1
    axes.annotate(
        number,
        (x, y),
        (0, side * padding),
        textcoords="offset points",
        ha="center",
        va="top" if y < 0 else "bottom",
        fontsize=6.5,
        rotation=90,
    )


def _number(height: float, measure: str) -> str:
    if measure == "success" or abs(height) >= 10:
        return f"{height:.0f}"
    return f"{height:.1f}" if abs(height) >= 1 else f"{height:.2f}"


def _legend(figure: Figure, summaries: Sequence[Summary]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    attacks = {each.attack for each in summaries}
    handles: list[Any] = [
        Patch(color=_COLORS[name], label=name) for name in ORDER if name in attacks
    ]
    if any((each.model, each.attack) in paper.SUCCESS for each in summaries):
        style = {"marker": "D", "linestyle": "", "markersize": _DIAMOND}
        handles.append(Line2D([], [], color=_QUOTED, label="what the paper says", **style))
    columns = int(figure.get_figwidth() / _ENTRY)
    place = "outside upper center"
    figure.legend(handles=handles, loc=place, ncols=columns, fontsize=9, frameon=False)
