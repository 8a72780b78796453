"""Panels (b) and (c): walks on many random networks, and where gradient ascent stays.

A *trap* is a walk of GD that ends around a local maximum below the global one. With the best of its
last points in the middle, the maximum of a small square is proven. If it lies well inside that
square, it is a local maximum; if all last points are in its neighbourhood and its value is below
the proven maximum by more than a hundredth of the network's range, GD is trapped.

Of the traps that our default leaves, panel (b) shows the first from which ADR-GD and a single run
of ours get away too (or one of them, where both never do), and panel (c) the one whose local
maximum is the lowest, off the edge of the square.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from facetwalk import exact
from facetwalk.experiments.experiment import Record
from facetwalk.experiments.landscape.networks import (
    LARGE,
    Extremes,
    networks,
    problem_of,
    square,
    written,
)
from facetwalk.experiments.landscape.walks import (
    ADR_GD,
    DEFAULT,
    GD,
    METHODS,
    ONE_RUN,
    SHORT,
    path,
    run_all,
    start_points,
)
from facetwalk.loop import Step
from facetwalk.objectives import Output
from facetwalk.problem import Result
from facetwalk.spaces import Box

AT_MAXIMUM = 0.99
"""A walk whose best value is so far up from the minimum to the maximum has arrived."""
LAST = 50
"""Steps at the end of a walk that tell where it stays."""
NEAR = 3 * SHORT
"""How far a coordinate of the last points may be from the local maximum."""
_RADIUS = SHORT
"""Within which a local maximum is the best point."""
_GAP = 1e-6
DRAWN = (GD, ADR_GD, ONE_RUN)
"""Methods whose walks are kept point by point."""


@dataclass(frozen=True)
class Trap:
    """A walk of GD that stays at a local maximum."""

    number: int
    """Of the walk."""
    x: Tensor
    """The local maximum, `(2,)`."""
    value: float
    share: float
    """How far up its value is from the network's minimum to its maximum."""

    @property
    def inside(self) -> bool:
        """Whether it lies off the edge of the square."""
        return self.x.abs().max().item() < 1 - _RADIUS


def local_maximum(network: nn.Sequential, near: Tensor) -> exact.Proof | None:
    """The proven best point around `near`, `(2,)`; None unless it is a local maximum."""
    space, center = square(), near[None]
    around = Box(space.project(center - NEAR), space.project(center + NEAR), shape=(2,))
    proof = exact.maximize(network, around, Output(0), gap=_GAP, engine="boxes")
    low, high = proof.x - near < _RADIUS - NEAR, proof.x - near > NEAR - _RADIUS
    at_edge = (low & (around.low[0] > space.low[0])) | (high & (around.high[0] < space.high[0]))
    return None if bool(at_edge.any()) or not proof.proven else proof


def find_traps(
    nets: Sequence[nn.Sequential], extremes: Sequence[Extremes], last: Tensor, values: Tensor
) -> list[Trap]:
    """The traps among walks whose last points are `(LAST, walks, 2)`, with values `(LAST, walks)`.

    Walks are those of the first network, of the second, ...
    """
    starts = last.shape[1] // len(nets)
    best = last[values.argmax(0), torch.arange(last.shape[1])]
    traps = []
    for number, point in enumerate(best):
        known = extremes[number // starts]
        if known.share(values[:, number].max()) >= AT_MAXIMUM:
            continue
        proof = local_maximum(nets[number // starts], point)
        if proof is None or (last[:, number] - proof.x).abs().max() > NEAR:
            continue
        share = known.share(torch.tensor(proof.value)).item()
        if share < AT_MAXIMUM:
            traps.append(Trap(number, proof.x, proof.value, share))
    return traps


def search_walks(count: int, starts: int) -> Record:
    """All methods from random starts on random networks; the traps; and two of them drawn."""
    nets = networks(LARGE, count)
    extremes = [Extremes.of(net) for net in nets]
    points = start_points(count * starts)
    seen: list[Step] = []
    results = {
        method.name: run_all(nets, points, method, seen.append if method is GD else None)
        for method in METHODS
    }
    shares = {name: _shares(result, extremes) for name, result in results.items()}
    last = seen[-LAST:]
    traps = find_traps(
        nets,
        extremes,
        torch.stack([step.x for step in last]),
        torch.stack([step.value for step in last]),
    )
    arrived = {name: (share >= AT_MAXIMUM).flatten() for name, share in shares.items()}
    left = [trap for trap in traps if arrived[DEFAULT.name][trap.number]]

    def others_there(trap: Trap) -> int:
        return sum(bool(arrived[each.name][trap.number]) for each in (ADR_GD, ONE_RUN))

    clear = [trap for trap in left if trap.inside] or left
    chosen = {
        "b": max(left, key=others_there, default=None),
        "c": min(clear, key=lambda trap: trap.share, default=None),
    }
    return {
        "sizes": list(LARGE),
        "networks": count,
        "starts": starts,
        "all_proven": all(known.highest.proven for known in extremes),
        "methods": [_summary(name, result, shares[name]) for name, result in results.items()],
        "traps": len(traps),
        "left_by_ours": len(left),
        "pictures": {
            panel: _picture(trap, nets, extremes, points, results)
            for panel, trap in chosen.items()
            if trap is not None
        },
    }


def _summary(name: str, result: Result, shares: Tensor) -> Record:
    """What a method found on all networks; shares are `(networks, starts)`."""
    return {
        "name": name,
        "solver": repr(result.solver),
        "arrived": (shares >= AT_MAXIMUM).double().mean().item(),
        "share": shares.mean().item(),
        "share_by_network": shares.mean(1).tolist(),
        "gradients": result.evaluations.backward.double().mean().item(),
        "probes": result.evaluations.probe.double().mean().item(),
    }


def _shares(result: Result, extremes: Sequence[Extremes]) -> Tensor:
    """How far up the best values are, `(networks, starts)`."""
    by_network = result.value.view(len(extremes), -1)
    return torch.stack([known.share(row) for known, row in zip(extremes, by_network, strict=True)])


def _picture(
    trap: Trap,
    nets: Sequence[nn.Sequential],
    extremes: Sequence[Extremes],
    points: Tensor,
    results: Mapping[str, Result],
) -> Record:
    """What a panel shows: the network, what each method finds, the local maximum certified."""
    which, number = trap.number // (len(points) // len(nets)), trap.number
    network, start = nets[which], points[number]
    certificate = exact.local_certificate(problem_of(network), trap.x, _RADIUS)
    return {
        "seed": which,
        "number": number,
        "weights": written(network),
        "highest": extremes[which].record(),
        "start": start.tolist(),
        "local": {
            "x": trap.x.tolist(),
            "value": trap.value,
            "radius": _RADIUS,
            "certified": certificate.holds,
        },
        "walks": {
            name: {
                "start_value": result.initial_value[number].item(),
                "best": result.value[number].item(),
                "best_x": result.x[number].tolist(),
                "gradients": result.evaluations.backward[number].item(),
                "probes": result.evaluations.probe[number].item(),
            }
            for name, result in results.items()
        },
        "paths": {each.name: path(network, start, each, number) for each in DRAWN},
    }
