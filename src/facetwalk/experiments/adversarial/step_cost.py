"""What a step of ADR-GD costs beside a step of PGD, and how many variables it has."""

from __future__ import annotations

import statistics
import time
import warnings
from dataclasses import replace

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
MOST_STEPS, FEWEST_STEPS = 200, 25
"""ADR-GD measures normals every 25 steps; fewer would not show what a step costs on average."""
_PATIENCE = 300.0
"""Seconds that one batch size may take, about."""
_GLANCE = 4
"""Steps of a first look at how long they take."""
_WEIGHT = 8
"""All methods together take about so many times as long as PGD."""


def variables(victim: Victim) -> int:
    """Entries of the input, and gates."""
    sites = discover(victim.model, victim.images[:1]).select(victim.network.gates)
    return victim.images[0].numel() + sites.neurons


def measure_cost(victim: Victim, batch: int, most_steps: int = MOST_STEPS) -> Record:
    """Seconds of a step of each method, setup included: medians of runs that take turns."""
    rows = torch.arange(batch, device=victim.images.device) % len(victim.images)
    _seconds(victim, rows, _solvers(victim, _GLANCE)[PGD])
    single = _seconds(victim, rows, _solvers(victim, _GLANCE)[PGD])
    steps = int(_PATIENCE / (single * _WEIGHT * (_REPEATS + 1)))
    steps = min(steps // FEWEST_STEPS * FEWEST_STEPS, most_steps)
    about: dict[str, object] = {
        "inputs": victim.images[0].numel(),
        "variables": variables(victim),
        "device": _name(victim.images.device),
    }
    if not steps:
        return {**about, "left_out": f"a step of PGD takes {single:.2g} s here"}
    solvers = _solvers(victim, steps)
    times: dict[str, list[float]] = {name: [] for name in solvers}
    for repeat in range(_REPEATS + 1):
        for name, solver in solvers.items():
            taken = _seconds(victim, rows, solver)
            if repeat:
                times[name].append(taken)
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    ratios = {name: median / medians[PGD] for name, median in medians.items() if name != PGD}
    return {**about, "steps": steps, "seconds": medians, "ratios": ratios}


def _solvers(victim: Victim, steps: int) -> dict[str, Solver]:
    case = Case(victim.data, victim.network, targeted=False, budget=steps)
    return {
        PGD: paper_pgd(case),
        TIMED[0]: replace(adr_gd(case, "paper"), steps=steps),
        TIMED[1]: replace(adr_gd(case, "released-attack"), steps=steps),
    }


def _seconds(victim: Victim, rows: Tensor, solver: Solver) -> float:
    """Of one step."""
    problem = Problem(
        victim.model, victim.goal(targeted=False).loss.select(rows), victim.space.select(rows)
    )
    _wait(rows.device)
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotAffineWarning)
        maximize(problem, solver=solver, batch_size=len(rows))
    _wait(rows.device)
    return (time.perf_counter() - began) / solver.steps


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"CPU, {threads} thread{'s' * (threads > 1)}"
