"""The cells of the experiment: every attack on every network that is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from facetwalk.experiments.adversarial.attacks import (
    ATTACKS,
    AUTOATTACK,
    check_budget,
    usual_budget,
)
from facetwalk.experiments.adversarial.autoattack import (
    NOT_INSTALLED,
    is_installed,
    run_autoattack,
)
from facetwalk.experiments.adversarial.data_sets import DATA_SETS, STAND_IN
from facetwalk.experiments.adversarial.measuring import Found, record_of, run_attack
from facetwalk.experiments.adversarial.step_cost import (
    BATCHES,
    FEWEST_STEPS,
    MOST_STEPS,
    measure_cost,
)
from facetwalk.experiments.adversarial.victims import Victim, find_victims
from facetwalk.experiments.experiment import Cell, Plan
from facetwalk.types import InputError

_QUICK_BUDGET = 100
_QUICK_NOTE = "AutoAttack is left out of the quick form."


@dataclass(frozen=True)
class Request:
    """What is asked for; None is what the data set decides."""

    data: Path | None = None
    """Folder of images."""
    nets: Path | None = None
    """Folder of networks."""
    device: str = "cpu"
    images: int | None = None
    seeds: int = 3
    budget: int | None = None
    only: Sequence[str] = ()
    """Names of data sets; all without."""
    quick: bool = False
    """Digits in the place of the data sets, a small budget, one seed."""

    def __post_init__(self) -> None:
        unknown = [name for name in self.only if name not in DATA_SETS]
        if unknown:
            raise InputError(
                f"there is no data set {unknown[0]!r}: choose of {', '.join(DATA_SETS)}"
            )
        if self.quick and (self.data or self.nets or self.only):
            raise InputError("the quick form has data and a network of its own: leave others out")
        if not self.quick and (self.data is None or self.nets is None):
            raise InputError("say where images and networks lie, or take the quick form")
        if self.budget is not None:
            check_budget(self.budget)


def plan(request: Request) -> Plan:
    """Find what is there, and say what is not. Costs come last, once for each architecture.

    >>> [cell.about["attack"] for cell in plan(Request(quick=True)).cells[:2]]
    ['FGSM', 'PGD (paper)']
    """
    chosen = [DATA_SETS[name] for name in request.only or DATA_SETS]
    cells: list[Cell] = []
    left_out: list[str] = []
    one_of_each: dict[Any, Victim] = {}
    for data in [STAND_IN] if request.quick else chosen:
        victims, missing = find_victims(
            data, request.data, request.nets, request.images, request.device
        )
        left_out += missing
        for victim in victims:
            cells += _attacks(victim, request)
            one_of_each.setdefault(_architecture(victim), victim)
    for victim in one_of_each.values():
        cells += _costs(victim, request)
    if request.quick:
        left_out.append(_QUICK_NOTE)
    elif not is_installed():
        left_out.append(NOT_INSTALLED)
    settings = {
        "images": request.images,
        "budget": request.budget,
        "quick": request.quick,
        "device": request.device,
    }
    return Plan(settings, cells, left_out)


def _attacks(victim: Victim, request: Request) -> Iterator[Cell]:
    made_from = victim.made_from
    budget = request.budget or (_QUICK_BUDGET if request.quick else usual_budget(victim.data))

    def attack(name: str, targeted: bool, seed: int, run: Callable[[], Found]) -> Cell:
        return Cell(
            {"kind": "attack", **_name(victim), "attack": name, "targeted": targeted, "seed": seed},
            made_from,
            lambda: record_of(victim, run(), targeted),
        )

    for seed in range(1 if request.quick else request.seeds):
        for targeted in (False, True):
            for known in ATTACKS:
                run = partial(run_attack, victim, known, targeted, budget, seed)
                yield attack(known.name, targeted, seed, run)
        if seed == 0 and is_installed() and not request.quick:
            yield attack(AUTOATTACK, False, seed, partial(run_autoattack, victim, seed))


def _costs(victim: Victim, request: Request) -> Iterator[Cell]:
    most_steps = FEWEST_STEPS if request.quick else MOST_STEPS
    for batch in BATCHES:
        measure = partial(measure_cost, victim, batch, most_steps)
        yield Cell({"kind": "cost", **_name(victim), "batch": batch}, victim.made_from, measure)


def _name(victim: Victim) -> dict[str, str]:
    return {"data": victim.data.name, "model": victim.network.name}


def _architecture(victim: Victim) -> Any:
    """What networks whose steps cost the same have in common."""
    return str(victim.model), str(victim.network.gates), victim.images.shape
