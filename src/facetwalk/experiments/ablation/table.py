"""The tables of the experiment."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from facetwalk.experiments.ablation import paper
from facetwalk.experiments.ablation.methods import ADR_GD, GD, OURS, SIGN
from facetwalk.experiments.ablation.summary import (
    CURVE,
    EQUAL,
    LONG,
    PROVEN,
    Summary,
    optima,
    summarise,
)
from facetwalk.experiments.experiment import Record
from facetwalk.experiments.random_networks import half_range, written
from facetwalk.experiments.tables import Table

ABOUT = (
    "Values: the best output found on a random network over [-1, 1]^n, mean over networks and "
    "seeds ± half the range of the seeds' means. GD, Adam, Adagrad and M4 draw no random numbers: "
    "where their seeds differ, it is by rounding. All methods have the same box and keep the best "
    "point that they have seen. `paper` is its table 1 (c), about other networks of the same kind.",
    "Gradients: evaluations on each network. A step of ADR-GD takes two, so it also has rows with "
    "the appendix's number of steps. Probes, forward passes that measure normals, come on top. "
    "M1 to M4 are the released form of ADR-GD, each without one of its parts.",
    "Shares: the sum of values over the sum of optima. `A, proven` are networks of Model A whose "
    "optimum is proven to 0.01: it lies between the best value that branch and bound found and its "
    "bound. Shares are of that value, the lower end, which a run may exceed by a little. For all "
    "other networks the optimum is the best value that any row and seed found, which proves "
    "nothing.",
)

_Rows = dict[tuple[str, int], dict[str, Summary]]


def tables(records: Sequence[Record]) -> list[Table]:
    """Values beside the paper's; shares of optima; networks whose optimum is proven."""
    rows: _Rows = {}
    for each in summarise(records):
        if each.part != CURVE:
            rows.setdefault((each.method, each.budget), {})[each.model] = each
    if not rows:
        return []
    models = list(dict.fromkeys(model for row in rows.values() for model in row))
    known = next((record for record in records if record["model"] == PROVEN), None)
    found = [_values(rows, [model for model in models if model != PROVEN])]
    found.append(_shares(rows, models, optima(records)))
    return [*found, *([_proven(rows, known)] if known else [])]


def _values(rows: _Rows, models: Sequence[str]) -> Table:
    cells = [
        [*_head(method, row), *(cell for model in models for cell in _value(row.get(model)))]
        for (method, _), row in rows.items()
    ]
    some = next(each for row in rows.values() for each in row.values())
    seeds, networks = some.values.shape
    columns = [name for model in models for name in (f"Model {model}", "paper")]
    title = (
        f"Best values on {networks} random networks of each model, {seeds} seed{'s' * (seeds > 1)}"
    )
    return Table(title, ["method", "gradients", *columns], cells, words=["method"])


def _head(method: str, row: dict[str, Summary]) -> list[str]:
    return [method, f"{next(iter(row.values())).gradients:,.0f}"]


def _value(found: Summary | None) -> list[str]:
    if found is None:
        return ["-", "-"]
    quoted = paper.MEANS.get((found.method, found.model))
    spread = found.spread if len(found.values) > 1 else None
    return [written(found.mean, spread), "" if quoted is None else written(quoted)]


def _shares(rows: _Rows, models: Sequence[str], limits: dict[str, np.ndarray]) -> Table:
    cells = [
        [
            *_head(method, row),
            *(_share(row.get(model), limits[model]) for model in models),
            *(f"{row[model].probes:,.0f}" if model in row else "-" for model in models),
        ]
        for (method, _), row in rows.items()
    ]
    columns = [*models, *(f"probes, {model}" for model in models)]
    title = "Shares of the optimum, in percent"
    return Table(title, ["method", "gradients", *columns], cells, words=["method"])


def _share(found: Summary | None, limit: np.ndarray) -> str:
    if found is None:
        return "-"
    shares = 100 * found.shares(limit)
    spread = f" ± {half_range(shares.tolist()):.3f}" if len(shares) > 1 else ""
    return f"{shares.mean():.3f}{spread}"


def _proven(rows: _Rows, known: Record) -> Table:
    """What some methods find on each network with a proven optimum."""
    shown = [
        each
        for row in rows.values()
        for each in row.values()
        if each.model == PROVEN
        and (each.part == LONG or (each.part == EQUAL and each.method in (GD, ADR_GD, SIGN, OURS)))
    ]
    cells = [
        [
            name,
            f"{known['optima'][number]:.4f}",
            f"{known['bounds'][number]:.4f}",
            *(f"{each.values[:, number].min():.4f}" for each in shown),
        ]
        for number, name in enumerate(known["names"])
    ]
    columns = [f"{each.method}, {each.gradients:,.0f}" for each in shown]
    title = "Networks whose optimum is proven to 0.01, and the worst seed of some methods"
    columns = ["network", "optimum, at least", "at most", *columns]
    return Table(title, columns, cells, words=["network"])
