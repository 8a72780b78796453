"""The cells of the experiment: the network itself, and every method on it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from facetwalk import exact
from facetwalk.digests import digest
from facetwalk.experiments.experiment import Cell, Plan, Record
from facetwalk.experiments.machines import with_machine
from facetwalk.experiments.toy.network import SEGMENTS, START, ToyNetwork, extension, line
from facetwalk.experiments.toy.walking import METHODS, Method, walk
from facetwalk.objectives import Output
from facetwalk.solvers import AdrGd

_SEEDS, _QUICK_SEEDS = 100, 10
_GAP = 1e-6


@dataclass(frozen=True)
class Request:
    """What is asked for."""

    quick: bool = False
    """Fewer seeds."""


def plan(request: Request) -> Plan:
    """The network, then each method.

    >>> [cell.about["method"] for cell in plan(Request()).cells[:3]]
    ['none', 'GD', 'GD']
    """
    made_from = digest(ToyNetwork().parameters())
    seeds = _QUICK_SEEDS if request.quick else _SEEDS
    cells = [Cell({"method": "none"}, made_from, partial(with_machine, describe_network, "cpu"))]
    for method in METHODS:
        about = {"method": method.name, "step": str(method.step)}
        walks = partial(measure, method, seeds)
        cells.append(Cell(about, made_from, partial(with_machine, walks, "cpu")))
    return Plan({"quick": request.quick}, cells)


def describe_network() -> Record:
    """The segments, their affine functions and the proven maximum."""
    proof = exact.maximize(ToyNetwork(), line(), Output(0), gap=_GAP, engine="boxes")
    return {
        "start": START,
        "segments": [
            {
                "name": segment.name,
                "low": segment.low,
                "high": segment.high,
                "gates": list(segment.gates),
                "slope": extension(segment, 1.0) - extension(segment, 0.0),
                "intercept": extension(segment, 0.0),
                "at_start": extension(segment, START),
            }
            for segment in SEGMENTS
        ],
        "maximum": {
            "x": proof.x.item(),
            "value": proof.value,
            "bound": proof.bound,
            "proven": proof.proven,
        },
    }


def measure(method: Method, seeds: int) -> Record:
    """Walks of all seeds, and the first one step by step. GD knows no chance: one walk is all."""
    solver = method.solver
    with_gates = isinstance(solver, AdrGd)
    walked = walk(solver, seeds if with_gates else 1)
    return {
        "seeds": walked.x.shape[1],
        "evaluations": solver.evaluations,
        "solver": repr(solver),
        "gate_step": solver.gate_step if with_gates else None,
        "alpha": solver.sharpness if with_gates else None,
        "best": walked.best.tolist(),
        "end": walked.x[-1].tolist(),
        "led_at": walked.first_lead(),
        "steps_on_target": walked.on_target.sum(0).tolist(),
        "arrived_at": walked.first_arrival(),
        "x": walked.x[:, 0].tolist(),
        "value": walked.value[:, 0].tolist(),
        "gates": None if walked.gates is None else walked.gates[:, 0].tolist(),
    }
