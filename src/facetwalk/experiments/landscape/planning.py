"""The cells of the experiment: one for each search."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from facetwalk.digests import digest
from facetwalk.exact.milp import require_highs
from facetwalk.experiments.experiment import Cell, Plan
from facetwalk.experiments.landscape.networks import LARGE, SMALL, networks
from facetwalk.experiments.landscape.one_sided import search_hyperplanes
from facetwalk.experiments.landscape.patterns import find_patterns
from facetwalk.experiments.landscape.traps import search_walks
from facetwalk.experiments.machines import with_machine

_NETWORKS, _STARTS, _POINTS = 64, 64, 128
_QUICK_NETWORKS, _QUICK_STARTS, _QUICK_POINTS = 6, 8, 16


@dataclass(frozen=True)
class Request:
    """What is asked for."""

    quick: bool = False
    """Fewer networks, starts and points."""


def plan(request: Request) -> Plan:
    """The network of panel (a); the walks of (b) and (c); the hyperplanes of (d).

    >>> [cell.about["part"] for cell in plan(Request()).cells]
    ['patterns', 'walks', 'hyperplanes']
    """
    require_highs()  # for certificates, at the end of a long search
    count, starts, points = (
        (_QUICK_NETWORKS, _QUICK_STARTS, _QUICK_POINTS)
        if request.quick
        else (_NETWORKS, _STARTS, _POINTS)
    )
    small, large = (
        digest(weight for net in networks(sizes, count) for weight in net.parameters())
        for sizes in (SMALL, LARGE)
    )
    parts = [
        ("patterns", small, find_patterns),
        ("walks", large, partial(search_walks, count, starts)),
        ("hyperplanes", large, partial(search_hyperplanes, count, points)),
    ]
    cells = [
        Cell({"part": part}, made_from, partial(with_machine, measure, "cpu"))
        for part, made_from, measure in parts
    ]
    return Plan({"quick": request.quick}, cells)
