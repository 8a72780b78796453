"""What returns under attack say: tables, sentences, and the paper's figure 3 (c)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from facetwalk.experiments.drawing import blank_figure
from facetwalk.experiments.experiment import Record
from facetwalk.experiments.policies.planning import ATTACKS, EPS, GAMES, NONE, OURS
from facetwalk.experiments.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ABOUT = (
    "Mean returns on levels 0 to 199 (easy), ± 95 % confidence; lower is the stronger attack. "
    "Policies take their most likely action; only that of CoinRun that ships draws one by its "
    "probabilities, as in its training. An action counts as changed where the most likely one is "
    "another.",
    "All but FGSM take as many gradients at each step, 200 unless `run.json` says otherwise. They "
    "maximise the cross-entropy against the policy's own action, as the paper does; the costly "
    "ones how much lower the logit of the action that is taken is, at the true image, than that "
    "of the policy's own.",
)
_COLORS = {
    NONE: "#57606a",
    "FGSM": "#1a7f37",
    "PGD": "#8250df",
    "ADR-GD": "#bf8700",
    "ours": "#80ccff",
    "PGD, costly": "#c297ff",
    OURS: "#0969da",
}
_BAR = 0.12


def tables(records: Sequence[Record]) -> list[Table]:
    """For each game a row for each policy, distance and attack.

    >>> record = {"game": "Jumper", "training": "natural", "attack": "FGSM", "eps": 3, "mean": 2.0}
    >>> record |= {"half_width": 0.5, "flipped": 0.25, "seconds_per_step": 0.01}
    >>> tables([record])[0].rows
    [['natural', '3/255', 'FGSM', '2.00 ± 0.50', '25 %', '10.0']]
    """
    columns = ["policy", "eps", "attack", "return", "actions changed", "ms a step"]
    games: dict[str, list[list[str]]] = {}
    for record in sorted(records, key=_place):
        eps = f"{record['eps']}/255" if record["eps"] else ""
        row = [record["training"], eps, record["attack"]]
        row.append(f"{record['mean']:.2f}{_confidence(record)}")
        row += [f"{100 * record['flipped']:.0f} %", f"{1000 * record['seconds_per_step']:.1f}"]
        games.setdefault(record["game"], []).append(row)
    words = ["policy", "eps", "attack"]
    return [Table(game, columns, rows, words=words) for game, rows in games.items()]


def _place(record: Record) -> tuple[int, int, int, int]:
    """Where a record stands among others: they come as they are measured."""
    game, attack = record["game"], record["attack"]
    trained = [*GAMES[game]].index(record["training"])
    return [*GAMES].index(game), trained, record["eps"], [NONE, *ATTACKS].index(attack)


def _confidence(record: Record) -> str:
    """Nothing after a single episode."""
    return "" if record["half_width"] is None else f" ± {record['half_width']:.2f}"


def comment(records: Sequence[Record]) -> list[str]:
    """What attacks leave each policy, and how often one leaves no more than others."""
    groups: dict[tuple[str, str, int], dict[str, Record]] = {}
    clean: dict[tuple[str, str], float] = {}
    for record in sorted(records, key=_place):
        policy = record["game"], record["training"]
        if record["attack"] == NONE:
            clean[policy] = record["mean"]
        else:
            groups.setdefault((*policy, record["eps"]), {})[record["attack"]] = record
    return [
        *(
            f"{game}, {trained}, eps {eps}/255: "
            f"{_least(list(same.values()), clean.get((game, trained)))}."
            for (game, trained, eps), same in groups.items()
        ),
        *_compared(groups.values(), "ADR-GD", ["PGD"]),
        *_compared(groups.values(), "ours", ["PGD", "ADR-GD"]),
        *_compared(groups.values(), OURS, ["PGD", "ADR-GD"]),
    ]


def _least(same: list[Record], clean: float | None) -> str:
    """Which attack is the strongest, where there are two or more to choose from."""
    worst, *others = sorted(same, key=lambda record: record["mean"])
    if others:
        width = others[0]["half_width"]
        words = (
            f"{worst['attack']} leaves the least, {worst['mean']:.2f}; {others[0]['attack']} "
            f"follows with {others[0]['mean']:.2f}"
        )
        if width is None:
            words += ", after one episode"
        elif others[0]["mean"] - worst["mean"] <= width:
            words += ", within its confidence interval"
    else:
        words = f"{worst['attack']}, the only attack that was measured, leaves {worst['mean']:.2f}"
    if clean is not None and worst["mean"] >= clean:
        words += f"; nothing is below play without an attack, {clean:.2f}"
    return words


def _compared(groups: Iterable[dict[str, Record]], one: str, others: Sequence[str]) -> list[str]:
    """In how many cases that have all of them an attack leaves no more than each of the others."""
    cases = [same for same in groups if all(name in same for name in (one, *others))]
    wins = sum(same[one]["mean"] <= min(same[name]["mean"] for name in others) for same in cases)
    if not cases:
        return []
    words = " and ".join(others)
    return [f"{one} leaves no more than {words} in {wins} of {len(cases)} cases."]


def draw(records: Sequence[Record]) -> Figure:
    """A panel for each game; groups of bars for policies and distances."""
    records = sorted(records, key=_place)
    games = list(dict.fromkeys(record["game"] for record in records))
    figure = blank_figure(1 + 5.2 * len(games), 3.6)
    panels: Any = figure.subplots(1, len(games), squeeze=False)[0]
    for axes, game in zip(panels, games, strict=True):
        shown = [record for record in records if record["game"] == game]
        trained = list(dict.fromkeys(record["training"] for record in shown))
        groups = [(each, eps) for each in trained for eps in EPS]
        measured = {record["attack"] for record in shown}
        attacks = [attack for attack in (NONE, *ATTACKS) if attack in measured]
        for record in shown:
            for place, (each, eps) in enumerate(groups):
                if record["training"] != each or record["eps"] not in (0, eps):
                    continue
                order = attacks.index(record["attack"])
                axes.bar(
                    place + _BAR * (order - (len(attacks) - 1) / 2),
                    record["mean"],
                    0.92 * _BAR,
                    yerr=record["half_width"] or 0.0,
                    color=_COLORS[record["attack"]],
                    error_kw={"lw": 0.8, "ecolor": "#24292f"},
                )
        names = [f"{each}\n{eps}/255" for each, eps in groups]
        axes.set_xticks(range(len(groups)), names, fontsize=8)
        axes.set_xlim(-0.5, len(groups) - 0.5)
        axes.set_title(game, fontsize=11)
        axes.axhline(0, color="#d0d7de", lw=0.8)
        axes.tick_params(axis="y", labelsize=8)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    panels[0].set_ylabel("mean return", fontsize=9)
    _legend(figure, records)
    return figure


def _legend(figure: Figure, records: Sequence[Record]) -> None:
    from matplotlib.patches import Patch

    attacks = {record["attack"] for record in records}
    handles = [Patch(color=color, label=name) for name, color in _COLORS.items() if name in attacks]
    figure.legend(handles=handles, loc="outside upper center", ncols=5, fontsize=9, frameon=False)
