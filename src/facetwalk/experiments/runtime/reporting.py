"""What the times say: tables and sentences, with the paper's numbers beside."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from facetwalk.experiments.adversarial.attacks import PGD
from facetwalk.experiments.adversarial.paper import Cost
from facetwalk.experiments.adversarial.step_cost import TIMED as VERSIONS
from facetwalk.experiments.adversarial.step_cost import StepTimes
from facetwalk.experiments.experiment import Record
from facetwalk.experiments.runtime.networks import TIMED
from facetwalk.experiments.tables import Table

ABOUT = (
    "Milliseconds of one step: what a run takes longer than one of 25 steps, over the steps that "
    "it has more; medians of runs that take turns, ± half the distance between the least and the "
    "most. On a CPU they are those of the processor.",
    "A step of PGD is a pass forward and one back. A step of ADR-GD is two of each, as one batch, "
    "and work on gates; every 25 steps it measures normals by forward passes. Where a pass fills "
    "the machine, that costs two steps of PGD and more. It can cost less where launching kernels "
    "takes longer than running them.",
    "Weights are random (seed 0) and images are noise, which changes no time. The paper does not "
    "say how many images it had at once, nor on which machine: its times cannot be compared with "
    "ours, its ratios can.",
)
NAMES = {PGD: "PGD", VERSIONS[0]: "ADR-GD", VERSIONS[1]: "ADR-GD, released"}
"""Short ones: beside them stand numbers that the paper prints."""
_PRINTED = ("PGD in the paper", "ADR-GD in the paper")
_QUOTED = {timed.name: timed.quoted for timed in TIMED}


def found(record: Record) -> StepTimes:
    return StepTimes(record["steps"], record["seconds"])


def theirs(record: Record) -> Cost | None:
    """What the paper says of the same network."""
    return _QUOTED[record["network"]]


def tables(records: Sequence[Record]) -> list[Table]:
    """Times, ratios and variables."""
    if not records:
        return []
    device = records[0]["device"]
    networks = {record["network"]: record for record in records}
    return [
        Table(
            f"Milliseconds of a step ({device})",
            ("network", "batch", "runs x steps", *NAMES.values(), *_PRINTED, "peak MiB"),
            [_times(record) for record in records],
            words=["network"],
        ),
        Table(
            f"A step of ADR-GD in steps of PGD ({device})",
            ("network", "batch", *(NAMES[name] for name in VERSIONS), _PRINTED[1]),
            [_ratios(record) for record in records],
            words=["network"],
        ),
        Table(
            "Variables",
            ("network", "PGD", "ADR-GD", *_PRINTED),
            [_variables(record) for record in networks.values()],
            words=["network"],
        ),
    ]


def _times(record: Record) -> list[str]:
    seconds, quoted = record["seconds"], theirs(record)
    return [
        record["network"],
        str(record["batch"]),
        f"{len(seconds[PGD])} x {record['steps']}" if record["steps"] else "-",
        *(_milliseconds(seconds[name]) if name in seconds else "-" for name in NAMES),
        f"{1000 * quoted.pgd:.3g}" if quoted else "",
        f"{1000 * quoted.adr_gd:.3g}" if quoted else "",
        f"{record['peak_mebibytes']:,}" if record["peak_mebibytes"] else "-",
    ]


def _milliseconds(taken: Sequence[float]) -> str:
    """A first look has no spread.

    >>> _milliseconds([0.001, 0.002, 0.004]), _milliseconds([1.5])
    ('2 ± 1.5', '1,500')
    """
    middle = _digits(1000 * statistics.median(taken), 3)
    return f"{middle} ± {_digits(1000 * _half_width(taken), 2)}" if len(taken) > 1 else middle


def _digits(value: float, digits: int) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.{digits}g}"


def _half_width(values: Sequence[float]) -> float:
    return (max(values) - min(values)) / 2


def _ratios(record: Record) -> list[str]:
    ours, quoted = found(record).ratios, theirs(record)
    return [
        record["network"],
        str(record["batch"]),
        *(_ratio(record, name, ours[name]) if name in ours else "-" for name in VERSIONS),
        f"{quoted.ratio:.1f}" if quoted else "",
    ]


def _ratio(record: Record, name: str, middle: float) -> str:
    """± of the ratios of runs that follow each other."""
    pairs = zip(record["seconds"][name], record["seconds"][PGD], strict=True)
    return f"{middle:.2f} ± {_half_width([slow / fast for slow, fast in pairs]):.2f}"


def _variables(record: Record) -> list[str]:
    quoted = theirs(record)
    counts = (record["inputs"], record["variables"])
    counts += (quoted.inputs, quoted.variables) if quoted else ()
    return [record["network"], *(f"{count:,}" for count in counts), *([] if quoted else ["", ""])]


def comment(records: Sequence[Record]) -> list[str]:
    """What a step costs, and whether variables are counted as in the paper."""
    networks = {record["network"]: record for record in records}
    return [*map(_on_cost, records), *_on_counts(list(networks.values()))]


def _on_cost(record: Record) -> str:
    times, quoted = found(record), theirs(record)
    where = f"{record['network']}, batch {record['batch']}"
    if times.left_out:
        return f"{where}: the cost was not measured, {times.left_out}."
    own, released = (times.ratios[name] for name in VERSIONS)
    beside = f"; {quoted.ratio:.1f} in the paper" if quoted else ""
    return (
        f"{where}: a step of ADR-GD costs {own:.2f} steps of PGD, as the released code has it "
        f"{released:.2f}{beside}."
    )


def _on_counts(records: Sequence[Record]) -> Iterator[str]:
    for record in records:
        quoted = theirs(record)
        if quoted is None:
            continue
        counted = f"{record['network']}: {record['variables']:,} variables"
        if record["variables"] == quoted.variables:
            yield f"{counted}, as in the paper."
        else:
            yield (
                f"{counted}, with gates at all neurons; the paper counts {quoted.variables:,} and "
                "does not say which."
            )
