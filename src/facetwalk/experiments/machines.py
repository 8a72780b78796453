"""What measurements were made on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from facetwalk.experiments.experiment import Record
from facetwalk.training.making import machine


def with_machine(measure: Callable[[], Record], device: str) -> Record:
    """The record of a measurement, and the machine that made it.

    >>> sorted(with_machine(lambda: {"value": 1.0}, "cpu"))
    ['machine', 'value']
    """
    return {**measure(), "machine": machine(device)}


def measured_on(records: Sequence[Record]) -> list[str]:
    """A sentence that names the machines, unless no record knows its own.

    >>> measured_on([{"machine": "abacus"}, {"machine": "loom"}, {"machine": "abacus"}, {}])
    ['Measured on abacus and loom; for 1 of 4 records the machine is not known.']
    >>> measured_on([{}])
    []
    """
    known = [record["machine"] for record in records if "machine" in record]
    if not known:
        return []
    unknown = len(records) - len(known)
    rest = f"; for {unknown} of {len(records)} records the machine is not known" if unknown else ""
    return [f"Measured on {' and '.join(dict.fromkeys(known))}{rest}."]
