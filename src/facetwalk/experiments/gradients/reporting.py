"""What the steps say: a table, and sentences."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from facetwalk.experiments.experiment import Record
from facetwalk.experiments.gradients.measuring import QUANTILES
from facetwalk.experiments.machines import measured_on
from facetwalk.experiments.tables import Table

ABOUT = (
    "alpha*: the distance from a point to the nearest facet of its polytope in the direction of "
    "the step that is taken from there, projection included. A step leaves its polytope where it "
    "is longer; flips are neurons that are on before and off after it, or the other way round; a "
    "step loses where the objective is lower after it. Steps that stand still do not count.",
    "Near: dead neurons whose hyperplane is no farther away than the step is long. Missed: those "
    "at which the gradient with the neuron alive turns it on and gains more, to first order in all "
    "other neurons, while the step that is taken leaves it dead. Holds: the best of these steps is "
    "ahead of the one that is taken also for the whole network.",
    "Random networks: outputs on [-1, 1]^n. Classifiers: cross-entropy of the label, pixels in "
    "[0, 1] and within 0.2 of the image. One run each from a random point, network and point with "
    "the seeds 0, 1, 2, ...; means ± standard deviations over networks or images.",
)
_LOW, _MEDIAN, _HIGH = (QUANTILES.index(share) for share in (0.25, 0.5, 0.75))
_COLUMNS = (
    "model",
    "method",
    "step / alpha* (quartiles)",
    "leave",
    "flips a step",
    "lose",
    "near",
    "missed",
    "steps with one",
    "holds",
    "runs",
    "steps",
)


def present(values: Sequence[float | None]) -> list[float]:
    """Without those that could not be measured.

    >>> present([1.0, None, 3.0])
    [1.0, 3.0]
    """
    return [value for value in values if value is not None]


def mean_of(values: Sequence[float | None]) -> float:
    """The mean of what could be measured."""
    return statistics.fmean(present(values))


def tables(records: Sequence[Record]) -> list[Table]:
    """One row for each case and method."""
    if not records:
        return []
    rows = [_row(record) for record in records]
    return [Table("Steps and facets", _COLUMNS, rows, words=["model", "method"])]


def _row(record: Record) -> list[str]:
    ratio = record["ratio"]
    return [
        record["model"],
        record["method"],
        f"{_short(ratio[_MEDIAN])} ({_short(ratio[_LOW])} to {_short(ratio[_HIGH])})",
        _percent(record["left"]),
        _number(record["flips"]),
        _percent(record["lost"]),
        _number(record["near"]),
        _number(record["missed"]),
        _percent(record["missed_any"]),
        f"{record['held']} of {record['tried']}",
        str(record["instances"]),
        f"{record['steps'] * record['instances'] - record['stood_still']:,}",
    ]


def _short(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def _number(values: Sequence[float | None]) -> str:
    found = present(values)
    return f"{_short(statistics.fmean(found))} ± {_short(statistics.pstdev(found))}"


def _percent(values: Sequence[float | None]) -> str:
    found = [100 * value for value in present(values)]
    return f"{statistics.fmean(found):.1f} ± {statistics.pstdev(found):.1f} %"


def comment(records: Sequence[Record]) -> list[str]:
    """Two sentences for each case and method."""
    found = [sentence for record in records for sentence in _on(record)]
    return [*found, *measured_on(records)]


def _on(record: Record) -> Iterator[str]:
    named = f"{record['model']}, {record['method']}"
    flips = mean_of(record["flips"])
    yield (
        f"{named}: the median step is {_short(record['ratio'][_MEDIAN])} times as long as the way "
        f"to the next facet; {mean_of(record['left']):.1%} of the steps leave their polytope, "
        f"{_short(flips)} of {record['neurons']:,} neurons flip in one, and "
        f"{mean_of(record['lost']):.1%} of the steps lose."
    )
    near, missed, some = (mean_of(record[name]) for name in ("near", "missed", "missed_any"))
    share = f" ({missed / near:.2%} of them)" if near else ""
    held = ""
    if record["tried"]:
        held = (
            f"; the best of them is better for the whole network in {record['held']} of "
            f"{record['tried']} cases"
        )
    yield (
        f"{named}: {_short(near)} dead neurons are near before a step, and the better gradient is "
        f"missed at {_short(missed)}{share}, at one or more before {some:.1%} of the steps{held}."
    )
