"""The cells of the experiment: both methods on every case that is there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from facetwalk.experiments.experiment import Cell, Plan
from facetwalk.experiments.gradients.cases import image_cases, random_case, stand_in
from facetwalk.experiments.gradients.measuring import measure
from facetwalk.experiments.gradients.walks import methods
from facetwalk.experiments.machines import with_machine
from facetwalk.experiments.random_networks import SIZES
from facetwalk.types import InputError

_STEPS, _LOOKS = 100, 5
_QUICK_STEPS, _QUICK_LOOKS, _QUICK_NETWORKS = 30, 3, 4


@dataclass(frozen=True)
class Request:
    """What is asked for."""

    nets: Path | None = None
    """Folder of MNIST's classifiers."""
    data: Path | None = None
    """Folder of MNIST."""
    networks: int = 16
    """Random networks of each model, and images of each classifier."""
    device: str = "cpu"
    quick: bool = False
    """Model A and the classifier of digits that is shipped, few networks, images and steps."""

    def __post_init__(self) -> None:
        if self.networks < 1:
            raise InputError(f"networks must be at least 1; it is {self.networks}")
        if self.quick and (self.data or self.nets):
            raise InputError("the quick form has data and a network of its own: leave others out")


def plan(request: Request) -> Plan:
    """Find what is there, and say what is not.

    >>> [cell.words for cell in plan(Request(quick=True)).cells[:2]]
    ['model Model A, method GD', 'model Model A, method sign ascent']
    """
    device = request.device
    if request.quick:
        count, steps, looks = min(request.networks, _QUICK_NETWORKS), _QUICK_STEPS, _QUICK_LOOKS
        models = ["A"]
        classifiers, missing = stand_in(count, device)
    else:
        count, steps, looks = request.networks, _STEPS, _LOOKS
        models = list(SIZES)
        classifiers, missing = image_cases(request.data, request.nets, count, device)
    cases = [*(random_case(model, count, device) for model in models), *classifiers]
    cells = [
        Cell(
            {"model": case.name, "method": method.name},
            case.made_from,
            partial(with_machine, partial(measure, case, method, looks), device),
        )
        for case in cases
        for method in methods(steps + 1)
    ]
    return Plan({"networks": count, "quick": request.quick}, cells, missing)
