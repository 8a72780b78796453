"""Auto-PGD (Croce and Hein, 2020)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from facetwalk.batching import per_row
from facetwalk.solvers.base import Solver, Task, require_positive


@dataclass
class ApgdState:
    x: Tensor
    previous_x: Tensor
    previous_loss: Tensor
    best_x: Tensor
    best_loss: Tensor
    best_gradient: Tensor
    step_size: Tensor
    """`(B,)`, in units of the space's radius."""
    increases: Tensor
    """Steps since the last checkpoint that raised the value, `(B,)`."""
    best_at_checkpoint: Tensor
    halved_at_checkpoint: Tensor


@dataclass(frozen=True, kw_only=True)
class Apgd(Solver):
    """PGD that halves its step where progress slows and then returns to the best point.

    Checkpoints lie at 22 % of the steps and then ever closer; at each, a row's step is halved
    if fewer than `increase_share` of its steps went up, or if neither step nor best value
    changed since the last one.
    """

    step_size: float = 2.0
    """First step, in units of the space's radius."""
    momentum: float = 0.75
    """Weight of the new step against the last one."""
    increase_share: float = 0.75
    """The paper's rho."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "step_size", "momentum")

    def checkpoints(self) -> dict[int, int]:
        """From each step after which sizes are checked to the number of steps it looks back on."""
        interval = max(int(0.22 * self.steps), 1)
        shrink, shortest = max(int(0.03 * self.steps), 1), max(int(0.06 * self.steps), 1)
        result, at = {}, interval
        while at < self.steps:
            result[at] = interval
            interval = max(interval - shrink, shortest)
            at += interval
        return result

    def init(self, task: Task, x: Tensor) -> ApgdState:
        lowest = torch.full((len(x),), -torch.inf, dtype=x.dtype, device=x.device)
        nothing = torch.zeros_like(lowest)
        return ApgdState(
            x=x,
            previous_x=x,
            previous_loss=lowest,
            best_x=x,
            best_loss=lowest,
            best_gradient=torch.zeros_like(x),
            step_size=torch.full_like(lowest, self.step_size),
            increases=nothing,
            best_at_checkpoint=lowest,
            halved_at_checkpoint=torch.ones_like(lowest, dtype=torch.bool),
        )

    def step(self, task: Task, state: ApgdState, t: int) -> tuple[ApgdState, Tensor]:
        value, loss, gradient = task.evaluate(state.x)
        better = loss > state.best_loss
        state = replace(
            state,
            best_x=torch.where(per_row(better, gradient), state.x, state.best_x),
            best_loss=torch.where(better, loss, state.best_loss),
            best_gradient=torch.where(per_row(better, gradient), gradient, state.best_gradient),
            increases=state.increases + (loss > state.previous_loss) * (t > 0),
            previous_loss=loss,
        )
        interval = self.checkpoints().get(t)
        if interval is not None:
            state, gradient = self._halve_where_stuck(state, gradient, interval)
        moved = state.x + per_row(state.step_size, gradient) * task.space.ascent(gradient)
        x = task.space.project(moved)
        if t > 0:
            inertia = (1 - self.momentum) * (state.x - state.previous_x)
            x = task.space.project(state.x + self.momentum * (x - state.x) + inertia)
        return replace(state, x=x, previous_x=state.x), value

    def _halve_where_stuck(
        self, state: ApgdState, gradient: Tensor, interval: int
    ) -> tuple[ApgdState, Tensor]:
        oscillates = state.increases <= self.increase_share * interval
        idle = ~state.halved_at_checkpoint & (state.best_at_checkpoint >= state.best_loss)
        halve = oscillates | idle
        wide = per_row(halve, gradient)
        return replace(
            state,
            x=torch.where(wide, state.best_x, state.x),
            step_size=torch.where(halve, state.step_size / 2, state.step_size),
            increases=torch.zeros_like(state.increases),
            best_at_checkpoint=state.best_loss,
            halved_at_checkpoint=halve,
        ), torch.where(wide, state.best_gradient, gradient)
