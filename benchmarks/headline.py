"""The figures of the README: what each attack finds on robust networks, and at what cost ours does.

Everything is read from the pages of `classifiers.py` and `reach.py`; nothing is measured here.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from report import HERE, RESULTS, earlier

from facetwalk.experiments.drawing import blank_figure, save_figure

PAGES = [RESULTS / "bar1_1000.json", RESULTS / "bar2_1000.json"]
NORMS = {"L2": RESULTS / "norm_2.json", "L1": RESULTS / "norm_1.json"}
IMAGES = HERE.parent / "docs" / "images"
OTHERS, AUTOATTACK, OURS = "other attacks", "AutoAttack, its own budget", "ours"
STYLES: dict[str, dict[str, Any]] = {
    OTHERS: {"color": "#9aa4b1", "marker": "|", "s": 90, "linewidths": 1.5, "zorder": 2},
    AUTOATTACK: {"color": "#6cb0f5", "marker": "o", "s": 42, "zorder": 3},
    OURS: {"color": "#188038", "marker": "D", "s": 42, "zorder": 4},
}


def kind(entry: dict) -> str:
    known = {"AutoAttack": AUTOATTACK, "ours": OURS}
    return known.get(entry["attack"], OTHERS)


def success(entry: dict) -> float:
    return statistics.mean(entry["success"])


def cases(entries: Sequence[dict]) -> list[str]:
    """Robust networks, those first on which ours leads the best other attack by most."""

    def lead(case: str) -> float:
        found = {e["attack"]: success(e) for e in entries if e["case"] == case}
        return found.pop("ours") - max(found.values())

    return sorted({e["case"] for e in entries if e["robust"]}, key=lead, reverse=True)


def tidy(panel: Any, title: str, label: str) -> None:
    panel.set_title(title, fontsize=10)
    panel.set_xlabel(label)
    panel.spines[["top", "right", "left"]].set_visible(False)
    panel.tick_params(axis="y", length=0)
    panel.grid(axis="x", color="#e8ebef")
    panel.set_axisbelow(True)


def draw_success(panel: Any, entries: Sequence[dict], place: Callable[[str], int]) -> None:
    for name, style in STYLES.items():
        shown = [e for e in entries if kind(e) == name and e["robust"]]
        panel.scatter([success(e) for e in shown], [place(e["case"]) for e in shown], **style)
    panel.set_xlim(0, 90)
    tidy(panel, "What 1000 gradients an image find", "images fooled, %")


def draw_cost(panel: Any, entries: Sequence[dict], place: Callable[[str], int]) -> None:
    ratios = [e["AutoAttack"]["evaluations"] / e["ours"]["evaluations"] for e in entries]
    rows = [place(e["case"]) for e in entries]
    bars = panel.barh(rows, ratios, height=0.55, color=STYLES[OURS]["color"])
    panel.bar_label(bars, [f"{ratio:.0f}" for ratio in ratios], padding=3, fontsize=8)
    panel.set_xscale("log")
    panel.set_xlim(1, 1000)
    panel.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
    tidy(panel, "What AutoAttack spends to find as much", "its evaluations for each of ours")


def draw_headline() -> Figure:
    """Success in L-infinity balls, and what AutoAttack spends for as much."""
    entries, reached = earlier(PAGES), earlier([RESULTS / "reach.json"])
    names = cases(entries)
    figure = blank_figure(11, 4.6)
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=[3, 2])
    draw_success(left, entries, names.index)
    draw_cost(right, reached, names.index)
    left.set_yticks(range(len(names)), names)
    left.invert_yaxis()
    return figure


def draw_norms() -> Figure:
    """Success in L2 and L1 balls."""
    figure = blank_figure(11, 2.9)
    for panel, (norm, page) in zip(figure.subplots(1, 2), NORMS.items(), strict=True):
        entries = earlier([page])
        names = cases(entries)
        draw_success(panel, entries, names.index)
        panel.set_xlim(0, 102)
        panel.set_title(f"{norm}: what 1000 gradients an image find", fontsize=10)
        panel.set_yticks(range(len(names)), [name.replace(f"{norm} ", "") for name in names])
        panel.set_ylim(len(names) - 0.4, -0.6)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=IMAGES)
    options = parser.parse_args()
    for name, figure in {"headline": draw_headline(), "norms": draw_norms()}.items():
        figure.legend(STYLES, loc="outside lower left", ncols=len(STYLES), frameon=False)
        save_figure(figure, options.out / f"{name}.png")
        print(f"Wrote {options.out / name}.png.")


if __name__ == "__main__":
    main()
