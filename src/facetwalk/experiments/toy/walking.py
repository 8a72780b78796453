"""Walks on the toy network, with the gates of ADR-GD on the way."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from facetwalk.experiments.random_networks import adr_gd, paper_gd
from facetwalk.experiments.toy.network import HILL, PEAK, START, TARGET, ToyNetwork, line
from facetwalk.objectives import Output
from facetwalk.solvers import Solver
from facetwalk.solvers.adr_gd import AdrGdState
from facetwalk.solvers.base import Task
from facetwalk.streams import Streams

EVALUATIONS = 200
"""Gradients of a walk."""
LONG, SHORT = 0.5, 0.02
"""Lengths of a step: the appendix's for random networks, and one that sees the valley."""
SOFT, SLOW = 20.0, 0.1
"""A sigmoid that is not saturated where gates begin, and gates that do not jump: the paper has
2000 and 1."""
SOFTENED = "ADR-GD (softened)"


@dataclass(frozen=True)
class Method:
    """A row of the table."""

    name: str
    step: float
    """Length of a step."""
    solver: Solver


def _gd(step: float) -> Method:
    return Method("GD", step, replace(paper_gd(EVALUATIONS), step_size=step))


def _adr_gd(preset: str, step: float) -> Method:
    solver = replace(adr_gd("A", EVALUATIONS, preset), step_size=step)
    return Method(f"ADR-GD ({preset})", step, solver)


def _softened() -> Method:
    solver = replace(adr_gd("A", EVALUATIONS, "released"), step_size=SHORT)
    return Method(SOFTENED, SHORT, replace(solver, sharpness=SOFT, gate_step=SLOW))


METHODS = (
    *(_gd(step) for step in (LONG, SHORT)),
    *(_adr_gd(preset, step) for preset in ("paper", "released") for step in (LONG, SHORT)),
    _softened(),
)
"""GD as the paper's ablation has it, ADR-GD with the appendix's parameters for Model A and both
presets, each with long and with short steps; and the released form with softer, slower gates."""


@dataclass(frozen=True)
class Walk:
    """Where each of B walks was before each step and at the end; float64, T + 1 rows."""

    x: Tensor
    """`(T + 1, B)`."""
    value: Tensor
    """`(T + 1, B)`."""
    gates: Tensor | None
    """`(T + 1, B, 2)` for `u` and `v`; None for a method without gates."""

    @property
    def best(self) -> Tensor:
        """The highest value of each walk, `(B,)`."""
        return self.value.amax(0)

    @property
    def on_target(self) -> Tensor:
        """Whether gates show the target's pattern, bool `(T + 1, B)`."""
        if self.gates is None:
            return torch.zeros_like(self.x, dtype=torch.bool)
        return ((self.gates > 0.5) == torch.tensor(TARGET.gates, dtype=torch.bool)).all(2)

    def first_lead(self) -> list[int | None]:
        """The first step at which gates show the target's pattern while x is on `f2`."""
        return _first(self.on_target & (self.x < PEAK))

    def first_arrival(self) -> list[int | None]:
        """The first step at which x is on `f1`."""
        return _first(self.x >= HILL)


def _first(happens: Tensor) -> list[int | None]:
    """The number of the first row, of bool `(T, B)`, in which each column is true."""
    numbers = happens.long().argmax(0).tolist()
    return [n if yes else None for n, yes in zip(numbers, happens.any(0).tolist(), strict=True)]


def walk(solver: Solver, seeds: int) -> Walk:
    """Walks from `START`, one for each seed: the steps that `maximize` takes, gates shown."""
    numbers = torch.arange(seeds)
    random = Streams.from_seeds(numbers, torch.zeros_like(numbers))
    task = Task(ToyNetwork(), Output(0), line(seeds), random)
    points, gates = [], []
    with torch.no_grad():
        state = solver.init(task, torch.full((seeds, 1), START, dtype=torch.float64))
        for t in range(solver.steps + 1):
            points.append(state.x)
            if isinstance(state, AdrGdState):
                gates.append(state.eta.clone())
            if t < solver.steps:
                state, _ = solver.step(task, state, t)
        values = torch.stack([task.value(x) for x in points])
    return Walk(torch.stack(points)[:, :, 0], values, torch.stack(gates) if gates else None)
