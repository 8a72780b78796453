"""The cells of the experiment: every method on every group of networks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from facetwalk.experiments.ablation.methods import ADR_GD_FORMS, CURVES, METHODS, OURS, Method
from facetwalk.experiments.ablation.proven import Optimum, proven_optima
from facetwalk.experiments.ablation.summary import APPENDIX, CURVE, EQUAL, LONG, PROVEN
from facetwalk.experiments.experiment import Cell, Plan, Record
from facetwalk.experiments.machines import with_machine
from facetwalk.experiments.random_networks import Outputs, Request, random_networks


@dataclass(frozen=True)
class _Gradients:
    """How many each part of the experiment has."""

    equal: int
    appendix: int
    long: int
    curve: Sequence[int]


_FULL = _Gradients(3000, 6000, 30_000, (100, 300, 1000, 10_000, 30_000))
_QUICK = _Gradients(40, 80, 400, (20,))


def plan(request: Request) -> Plan:
    """A cell for each method, group of networks and number of gradients.

    >>> plan(Request(quick=True, networks=1)).cells[0].words
    'model A, method GD, part equal, budget 40'
    """
    request = request.reduced()
    gradients = _QUICK if request.quick else _FULL
    cells: list[Cell] = []
    for model in request.models:
        networks = random_networks(model, request.networks)
        outputs = Outputs.of(networks, request.seeds, request.device)
        cells += _cells(model, outputs, gradients, request.device, [])
    if "A" in request.models:
        optima = proven_optima()
        networks = [each.network() for each in optima]
        outputs = Outputs.of(networks, request.seeds, request.device)
        cells += _cells(PROVEN, outputs, gradients, request.device, optima)
    return Plan(request.settings, cells, request.left_out)


def _cells(
    model: str,
    outputs: Outputs,
    gradients: _Gradients,
    device: str,
    optima: Sequence[Optimum],
) -> Iterator[Cell]:
    made_from = outputs.made_from
    for part, method, budget in _parts(gradients, with_curves=bool(optima)):
        about = {"model": model, "method": method.name, "part": part, "budget": budget}
        measure = partial(_measure, model, outputs, method, budget, optima)
        yield Cell(about, made_from, partial(with_machine, measure, device))


def _parts(gradients: _Gradients, with_curves: bool) -> Iterator[tuple[str, Method, int]]:
    """What is run on one group of networks."""
    for method in METHODS:
        yield EQUAL, method, gradients.equal
    for method in METHODS:
        if method.name in ADR_GD_FORMS:
            yield APPENDIX, method, gradients.appendix
        if method.name == OURS:
            yield LONG, method, gradients.long
    for method in METHODS:
        if with_curves and method.name in CURVES:
            for budget in gradients.curve:
                if method.name != OURS or budget != gradients.long:
                    yield CURVE, method, budget


def _measure(
    model: str, outputs: Outputs, method: Method, budget: int, optima: Sequence[Optimum]
) -> Record:
    found = outputs.solve(method.run("A" if model == PROVEN else model, budget))
    if not optima:
        return found
    return {
        **found,
        "names": [each.name for each in optima],
        "optima": [each.value for each in optima],
        "bounds": [each.bound for each in optima],
    }
