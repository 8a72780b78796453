"""What the walks say: two tables, and sentences."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from facetwalk.experiments.experiment import Record
from facetwalk.experiments.machines import measured_on
from facetwalk.experiments.random_networks import half_range
from facetwalk.experiments.tables import Table

ABOUT = (
    "The paper does not print the function of its figure 2. Ours is a ReLU network with two hidden "
    "neurons, u and v, and so with four patterns, one for each of f1 to f4.",
    "Every method has as many gradients and starts at the same point; ADR-GD takes two for a step. "
    "Best: the highest value on the way, mean of the seeds ± half their range. "
    "Led: walks in which the gates show f1's pattern while x still is on f2.",
)
_REACHED = 1e-3
"""So near to the proven maximum counts as reached."""


def network_of(records: Sequence[Record]) -> Record | None:
    """The record that describes the network, once it is there."""
    return next((record for record in records if record["method"] == "none"), None)


def walks_of(records: Sequence[Record]) -> list[Record]:
    """The records of methods."""
    return [record for record in records if record["method"] != "none"]


def reached(walk: Record, maximum: float) -> int:
    """How many walks reach the maximum.

    >>> reached({"best": [1.2, 0.6]}, 1.2)
    1
    """
    return sum(value >= maximum - _REACHED for value in walk["best"])


def tables(records: Sequence[Record]) -> list[Table]:
    """The segments, then the methods."""
    network = network_of(records)
    if network is None:
        return []
    maximum = network["maximum"]
    found = [_segments(network)]
    if walks := walks_of(records):
        title = (
            f"Walks from x = {network['start']:g}; the maximum is {maximum['value']:.3f} at "
            f"x = {maximum['x']:.3f}, {'proven' if maximum['proven'] else 'not proven'}"
        )
        columns = ["method", "step", "gate step", "alpha", "best", "end", "led", "reached"]
        rows = [_row(walk, maximum["value"]) for walk in walks]
        columns += ["seeds", "gradients"]
        found.append(Table(title, columns, rows, words=["method"]))
    return found


def _segments(network: Record) -> Table:
    rows = [
        [
            segment["name"],
            f"{segment['low']:g} to {segment['high']:g}",
            f"{segment['gates'][0]}, {segment['gates'][1]}",
            f"{segment['slope']:.2f}",
            f"{segment['at_start']:.2f}",
        ]
        for segment in network["segments"]
    ]
    columns = ["segment", "x", "u, v", "slope", "extended to the start"]
    return Table("Segments and their patterns", columns, rows, words=["segment"])


def _row(walk: Record, maximum: float) -> list[str]:
    def optional(name: str) -> str:
        return "" if walk[name] is None else f"{walk[name]:g}"

    def spread(values: Sequence[float]) -> str:
        half = f" ± {half_range(values):.2f}" if len(values) > 1 else ""
        return f"{statistics.fmean(values):.2f}{half}"

    led = "" if walk["gates"] is None else str(_led(walk))
    return [
        walk["method"],
        walk["step"],
        optional("gate_step"),
        optional("alpha"),
        spread(walk["best"]),
        spread(walk["end"]),
        led,
        str(reached(walk, maximum)),
        str(walk["seeds"]),
        str(walk["evaluations"]),
    ]


def _led(walk: Record) -> int:
    return sum(step is not None for step in walk["led_at"])


def comment(records: Sequence[Record]) -> list[str]:
    """What the network is, and what each method does on it."""
    network = network_of(records)
    if network is None:
        return []
    values = sorted(network["segments"], key=lambda each: each["at_start"], reverse=True)
    order = " > ".join(f"{each['name']}(x) = {each['at_start']:.2f}" for each in values)
    walked = _on_walks(walks_of(records), network)
    return [f"At the start {order}.", *walked, *measured_on(records)]


def _on_walks(walks: Sequence[Record], network: Record) -> Iterator[str]:
    maximum = network["maximum"]["value"]
    for walk in walks:
        named = f"{walk['method']} with steps of {walk['step']}"
        if walk["gates"] is None:
            yield (
                f"{named} ends at x = {walk['end'][0]:.2f}; the best value on the way is "
                f"{walk['best'][0]:.3f} of {maximum:.3f}."
            )
            continue
        names = ("led_at", "steps_on_target", "arrived_at")
        arrived = [each for each in zip(*map(walk.get, names), strict=True) if None not in each]
        when = ""
        if arrived:
            led, held, there = map(statistics.median, zip(*arrived, strict=True))
            when = (
                f" (from step {led:g}, for {held:g} steps; x is on f1 from step {there:g}: medians)"
            )
        yield (
            f"{named}: gates show f1's pattern while x is on f2 in {_led(walk)} of "
            f"{walk['seeds']} walks{when}; the maximum is reached in {reached(walk, maximum)}."
        )
