"""The table of the experiment."""

from __future__ import annotations

from collections.abc import Sequence

from facetwalk.experiments.experiment import Record
from facetwalk.experiments.random_networks import written
from facetwalk.experiments.sigmoid.summary import Summary, summarise
from facetwalk.experiments.tables import Table

ABOUT = (
    "Values: the best output found on a random network over [-1, 1]^n, mean over networks and "
    "seeds ± half the range of the seeds' means. ADR-GD has the appendix's parameters but for "
    "alpha, the sharpness of s_alpha(eta) = 1 / (1 + exp(-alpha (eta - 1/2))); GD has as many "
    "gradients. Probes, forward passes that measure normals, come on top. `paper` is the table in "
    "its appendix A, about other networks of the same kind; it has no Model B.",
)


def tables(records: Sequence[Record]) -> list[Table]:
    """A row for GD, and one for each form of ADR-GD and sharpness."""
    summaries = summarise(records)
    if not summaries:
        return []
    models = sorted({each.model for each in summaries})
    rows: dict[tuple[str, int], dict[str, Summary]] = {}
    for each in summaries:
        rows.setdefault((each.method, each.alpha), {})[each.model] = each
    some = summaries[0]
    seeds = len(some.means)
    cells = [
        [
            method,
            f"{alpha:,}" if alpha else "",
            *(cell for model in models for cell in _value(row.get(model))),
            f"{next(iter(row.values())).gradients:,.0f}",
            *(f"{row[model].probes:,.0f}" if model in row else "-" for model in models),
        ]
        for (method, alpha), row in rows.items()
    ]
    columns = [name for model in models for name in (f"Model {model}", "paper")]
    columns = ["method", "alpha", *columns, "gradients", *(f"probes, {model}" for model in models)]
    title = f"{some.networks} random networks of each model, {seeds} seed{'s' * (seeds > 1)}"
    return [Table(title, columns, cells, words=["method"])]


def _value(found: Summary | None) -> list[str]:
    if found is None:
        return ["-", "-"]
    spread = found.spread if len(found.means) > 1 else None
    quoted = "" if found.quoted is None else written(found.quoted)
    return [written(found.mean, spread), quoted]
