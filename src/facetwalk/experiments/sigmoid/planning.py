"""The cells of the experiment: GD, and ADR-GD with each sharpness."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from facetwalk.experiments.experiment import Cell, Plan
from facetwalk.experiments.machines import with_machine
from facetwalk.experiments.random_networks import (
    Outputs,
    Request,
    Run,
    adr_gd,
    paper_gd,
    random_networks,
)
from facetwalk.solvers import Method

ALPHAS = (20, 200, 2000, 20000)
"""The sharpnesses of the paper's table."""
GD = "GD"
PRESETS = {"released": "ADR-GD (released)", "paper": "ADR-GD (paper)"}
"""What records call ADR-GD."""

_GRADIENTS, _QUICK_GRADIENTS = 6000, 60
"""The appendix's 3000 steps of ADR-GD, which take two gradients each; GD has as many."""


def plan(request: Request) -> Plan:
    """A cell for GD and for each preset and sharpness, on every model.

    >>> [cell.words for cell in plan(Request(quick=True, networks=1)).cells[:2]]
    ['model A, method GD', 'model A, method ADR-GD (released), alpha 20']
    """
    request = request.reduced()
    gradients = _QUICK_GRADIENTS if request.quick else _GRADIENTS
    cells: list[Cell] = []
    for model in request.models:
        networks = random_networks(model, request.networks)
        outputs = Outputs.of(networks, request.seeds, request.device)
        cells += _cells(model, outputs, gradients, request.device)
    return Plan(request.settings, cells, request.left_out)


def _cells(model: str, outputs: Outputs, gradients: int, device: str) -> Iterator[Cell]:
    made_from = outputs.made_from

    def cell(about: dict[str, str | int], solver: Method) -> Cell:
        solve = partial(outputs.solve, Run(solver))
        return Cell({"model": model, **about}, made_from, partial(with_machine, solve, device))

    yield cell({"method": GD}, paper_gd(gradients))
    for preset, name in PRESETS.items():
        for alpha in ALPHAS:
            solver = replace(adr_gd(model, gradients, preset), sharpness=float(alpha))
            yield cell({"method": name, "alpha": alpha}, solver)
