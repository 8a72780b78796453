"""What a step of ADR-GD costs beside a step of PGD, and how many variables it has."""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from facetwalk.experiments.adversarial.attacks import (
    ADR_GD,
    PAPER_ADR_GD,
    PGD,
    Case,
    adr_gd,
    paper_pgd,
)
from facetwalk.experiments.adversarial.victims import Victim
from facetwalk.experiments.experiment import Record
from facetwalk.maximize import maximize
from facetwalk.problem import Problem
from facetwalk.sites import discover
from facetwalk.solvers import Solver
from facetwalk.types import NotAffineWarning

BATCHES = (1, 64)
TIMED = (PAPER_ADR_GD, f"{ADR_GD} (released)")
"""Beside PGD."""
_REPEATS = 5
MOST_STEPS, FEWEST_STEPS = 1000, 25
"""ADR-GD measures normals every 25 steps; fewer would not show what a step costs on average. A run
that is taken off, for its setup, has the fewest."""
_AIM, _PATIENCE = 15.0, 300.0
"""Seconds that one batch size should take, and may take with the fewest steps, about."""
_GLANCE = 2
"""Steps of a first look at how long they take."""
_SHORTEST = 1e-6
"""Seconds of a step at least, where a first look takes no time that can be told."""
_WEIGHT = 8
"""All methods together take about so many times as long as PGD."""


def variables(victim: Victim) -> int:
    """Entries of the input, and gates."""
    sites = discover(victim.model, victim.images[:1]).select(victim.network.gates)
    return victim.images[0].numel() + sites.neurons


@dataclass(frozen=True)
class StepTimes:
    """Seconds of a step of each method, one figure for each of several runs of so many steps.

    Where that would take too long, no steps, and what a first look at PGD says.

    >>> StepTimes(25, {PGD: [1.0, 2.0, 9.0], PAPER_ADR_GD: [5.0, 6.0, 7.0]}).ratios
    {'ADR-GD (paper)': 3.0}
    """

    steps: int
    seconds: Mapping[str, Sequence[float]]

    @property
    def medians(self) -> dict[str, float]:
        return {name: statistics.median(taken) for name, taken in self.seconds.items()}

    @property
    def ratios(self) -> dict[str, float]:
        """What a step of ADR-GD costs, in steps of PGD."""
        medians = self.medians
        return {name: medians[name] / medians[PGD] for name in medians if name != PGD}

    @property
    def left_out(self) -> str | None:
        """Why nothing was measured."""
        return None if self.steps else f"a step of PGD takes {self.medians[PGD]:.2g} s here"


def time_steps(victim: Victim, batch: int, most_steps: int = MOST_STEPS) -> StepTimes:
    """Runs of all methods that take turns.

    A step is what a run takes longer than a short one, over the steps that it has more. On a CPU
    the seconds are those of the processor, which others at work there hardly change.
    """
    rows = torch.arange(batch, device=victim.images.device) % len(victim.images)
    solvers = _solvers(victim)
    _seconds(victim, rows, solvers[PGD], 1)
    single = _step_seconds(victim, rows, solvers[PGD], _GLANCE, short=1)
    if _steps_in(_PATIENCE, single) < FEWEST_STEPS:
        return StepTimes(0, {PGD: [single]})
    single = _step_seconds(victim, rows, solvers[PGD], FEWEST_STEPS)
    wanted = _steps_in(_AIM, single) // FEWEST_STEPS * FEWEST_STEPS
    steps = min(max(wanted, FEWEST_STEPS), most_steps)
    times: dict[str, list[float]] = {name: [] for name in solvers}
    for repeat in range(_REPEATS + 1):
        for name, solver in solvers.items():
            taken = _step_seconds(victim, rows, solver, steps)
            if repeat:
                times[name].append(taken)
    return StepTimes(steps, times)


def sizes(victim: Victim) -> dict[str, Any]:
    """What a step's cost depends on."""
    return {
        "inputs": victim.images[0].numel(),
        "variables": variables(victim),
        "device": _name(victim.images.device),
    }


def measure_cost(victim: Victim, batch: int, most_steps: int = MOST_STEPS) -> Record:
    """Seconds of a step of each method: medians."""
    found, about = time_steps(victim, batch, most_steps), sizes(victim)
    if found.left_out:
        return {**about, "left_out": found.left_out}
    return {**about, "steps": found.steps, "seconds": found.medians, "ratios": found.ratios}


def _solvers(victim: Victim) -> dict[str, Solver]:
    case = Case(victim.data, victim.network, targeted=False, budget=FEWEST_STEPS)
    return {
        PGD: paper_pgd(case),
        TIMED[0]: adr_gd(case, "paper"),
        TIMED[1]: adr_gd(case, "released-attack"),
    }


def _steps_in(seconds: float, single: float) -> int:
    """How many steps of every run fit, where a step of PGD takes `single`."""
    return int(seconds / (max(single, _SHORTEST) * _WEIGHT * (_REPEATS + 1)))


def _step_seconds(
    victim: Victim, rows: Tensor, solver: Solver, steps: int, short: int = FEWEST_STEPS
) -> float:
    less, more = (_seconds(victim, rows, solver, count) for count in (short, short + steps))
    return (more - less) / steps


def _seconds(victim: Victim, rows: Tensor, solver: Solver, steps: int) -> float:
    """Of one run."""
    clock = time.perf_counter if rows.is_cuda else time.process_time
    problem = Problem(
        victim.model, victim.goal(targeted=False).loss.select(rows), victim.space.select(rows)
    )
    _wait(rows.device)
    began = clock()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotAffineWarning)
        maximize(problem, solver=replace(solver, steps=steps), batch_size=len(rows))
    _wait(rows.device)
    return clock() - began


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"CPU, {threads} thread{'s' * (threads > 1)}"
