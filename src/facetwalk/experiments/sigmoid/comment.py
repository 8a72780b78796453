"""What the records show, in short sentences that are computed from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from facetwalk.experiments.experiment import Record
from facetwalk.experiments.machines import measured_on
from facetwalk.experiments.random_networks import written
from facetwalk.experiments.sigmoid import paper
from facetwalk.experiments.sigmoid.planning import ALPHAS, GD, PRESETS
from facetwalk.experiments.sigmoid.summary import Summary, summarise


def comment(records: Sequence[Record]) -> list[str]:
    """For each model and form of ADR-GD: the best sharpness, and those that GD beats."""
    summaries = summarise(records)
    sentences: list[str] = []
    for model in sorted({each.model for each in summaries}):
        here = [each for each in summaries if each.model == model]
        for name in PRESETS.values():
            sentences += _on([each for each in here if each.method in (GD, name)])
    return [*sentences, *measured_on(records)]


def _on(shown: Sequence[Summary]) -> Iterator[str]:
    forms = [each for each in shown if each.method != GD]
    if not forms:
        return
    best = max(forms, key=lambda each: each.mean)
    where = f"Model {best.model}, {best.method}"
    theirs = {alpha: paper.ADR_GD.get((alpha, best.model), 0.0) for alpha in ALPHAS}
    quoted = max(theirs, key=lambda alpha: theirs[alpha])
    beside = f"; the paper's is {quoted:,}" if theirs[quoted] else ""
    yield f"{where}: the best sharpness is {best.alpha:,}, {written(best.mean)}{beside}."
    for each in shown:
        if each.method == GD:
            lost = [f"{form.alpha:,}" for form in forms if form.mean < each.mean]
            verdict = f"beats it at sharpness {', '.join(lost)}" if lost else "never beats it"
            yield f"{where}: GD, {written(each.mean)}, {verdict}."
