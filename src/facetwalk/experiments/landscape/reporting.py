"""What the searches say: tables, and sentences."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

from facetwalk.experiments.experiment import Record
from facetwalk.experiments.landscape.traps import AT_MAXIMUM
from facetwalk.experiments.machines import measured_on
from facetwalk.experiments.tables import Table

ABOUT = (
    "Random networks of two inputs in [-1, 1], weights uniform on (-1, 1). Every method has 200 "
    "gradients and the same starts; ADR-GD takes two for a step, and what is added are probes. "
    "Values are the best on the way; maxima and minima are proven by branch and bound.",
    "Share: how far the best value is on the way from the network's minimum to its maximum; "
    f"a walk that is {AT_MAXIMUM:.0%} of the way up is at the maximum. A trap: GD with short steps "
    "ends around a local maximum that is not.",
)


def part_of(records: Sequence[Record], part: str) -> Record | None:
    """The record of a search, once it is there."""
    return next((record for record in records if record["part"] == part), None)


def tables(records: Sequence[Record]) -> list[Table]:
    """The walks of all starts; what each panel shows."""
    walks, found = part_of(records, "walks"), []
    if walks is not None:
        found.append(_methods(walks))
    if panels := list(_panels(records)):
        columns = ["panel", "method", "start", "best", "maximum", "share", "gradients"]
        found.append(Table("What is drawn", columns, panels, words=["panel", "method"]))
    return found


def _methods(walks: Record) -> Table:
    title = (
        f"{walks['networks']} networks {_sizes(walks)}, {walks['starts']} random starts each: "
        f"share, mean ± standard deviation over networks"
    )
    rows = [
        [
            method["name"],
            f"{100 * method['arrived']:.1f} %",
            f"{method['share']:.3f} ± {statistics.pstdev(method['share_by_network']):.3f}",
            _spent(method),
        ]
        for method in walks["methods"]
    ]
    columns = ["method", "at the maximum", "share", "gradients"]
    return Table(title, columns, rows, words=["method"])


def _panels(records: Sequence[Record]) -> Iterator[list[str]]:
    patterns, walks, hyperplanes = (
        part_of(records, part) for part in ("patterns", "walks", "hyperplanes")
    )
    if patterns is not None:
        yield ["a", "", "", "", f"{patterns['highest']['value']:.4f}", "", ""]
    for panel, picture in (walks or {"pictures": {}})["pictures"].items():
        for name, walk in picture["walks"].items():
            yield _row(panel, name, picture, walk["start_value"], walk["best"], _spent(walk))
    if hyperplanes is not None and hyperplanes["picture"] is not None:
        picture, step = hyperplanes["picture"], hyperplanes["step"]
        for name, key in (("dead", "after_minus"), ("alive", "after_plus")):
            words = f"a step of {step} along the gradient with the neuron {name}"
            yield _row("d", words, picture, picture["value"], picture[key], "1")


def _row(
    panel: str, name: str, picture: Record, start: float, best: float, spent: str
) -> list[str]:
    top = picture["highest"]
    share = (best - top["lowest"]) / (top["value"] - top["lowest"])
    return [
        panel,
        name,
        f"{start:.4f}",
        f"{best:.4f}",
        f"{top['value']:.4f}",
        f"{share:.3f}",
        spent,
    ]


def _spent(found: Record) -> str:
    probes = f" + {found['probes']:.0f}" if found["probes"] else ""
    return f"{found['gradients']:.0f}{probes}"


def _sizes(record: Record) -> str:
    return "-".join(map(str, record["sizes"]))


def comment(records: Sequence[Record]) -> list[str]:
    """What was searched, and what was found."""
    sentences: list[str] = []
    if patterns := part_of(records, "patterns"):
        sentences.append(
            f"(a) is network {patterns['seed']}, the first of {patterns['searched']} with "
            f"{len(patterns['shares'])} polytopes that can all be seen."
        )
    if walks := part_of(records, "walks"):
        sentences += _on_walks(walks)
    if hyperplanes := part_of(records, "hyperplanes"):
        sentences += _on_hyperplanes(hyperplanes)
    return [*sentences, *measured_on(records)]


def _on_walks(walks: Record) -> Iterator[str]:
    every = walks["networks"] * walks["starts"]
    proven = "all maxima are proven" if walks["all_proven"] else "not all maxima are proven"
    yield (
        f"From {every} random starts ({walks['networks']} networks; {proven}) GD with short steps "
        f"is trapped {walks['traps']} times ({walks['traps'] / every:.1%}); our default reaches "
        f"the maximum in {walks['left_by_ours']} of these."
    )
    for method in walks["methods"]:
        yield (
            f"{method['name']}: at the maximum from {method['arrived']:.1%} of the starts; "
            f"{method['share']:.1%} of the way from minimum to maximum on average."
        )
    for panel, picture in walks["pictures"].items():
        local, top = picture["local"], picture["highest"]
        word = "certified" if local["certified"] else "not certified"
        yield (
            f"({panel}) is network {picture['seed']}, start {picture['number']}: GD ends around a "
            f"local maximum of {local['value']:.4f} ({word} within {local['radius']:g} of each "
            f"coordinate); the maximum is {top['value']:.4f}."
        )


def _on_hyperplanes(found: Record) -> Iterator[str]:
    picture = found["picture"]
    yield (
        f"Of {found['points']} random points on hyperplanes, torch's gradient is the worse one at "
        f"{found['misled']} ({found['misled'] / found['points']:.1%}); at "
        f"{found['better_after_a_step']} of these the other one is also ahead after a step of "
        f"{found['step']}."
    )
    if picture is None:
        return
    lengths = [math.hypot(*picture[key]) for key in ("minus", "plus")]
    yield (
        f"(d) is network {picture['seed']}: the gradient is {lengths[0]:.3f} long with the neuron "
        f"dead and {lengths[1]:.3f} with the neuron alive; a step of {found['step']} leads from "
        f"{picture['value']:.4f} to {picture['after_minus']:.4f} and {picture['after_plus']:.4f}."
    )
