"""Perturbed gradient ascent (Jin et al., 2017)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from facetwalk.batching import per_row, row_norm
from facetwalk.solvers.base import Task, require_positive
from facetwalk.solvers.gd import GradientSteps, normalized


@dataclass
class PerturbedPoint:
    x: Tensor
    last_noise: Tensor
    """The step at which each row was last perturbed, int64 `(B,)`."""


@dataclass(frozen=True, kw_only=True)
class PerturbedGd(GradientSteps):
    """Gradient ascent that adds noise from a ball when progress has all but stopped.

    Progress is how far the projected step moves, as a share of the step: the length of the
    gradient mapping, which unlike the gradient's own length vanishes at constrained maxima.
    """

    noise_radius: float = 0.1
    """Radius of the ball from which noise is drawn, in units of the space's radius."""
    noise_period: int = 25
    """At least so many steps between two perturbations."""
    tolerance: float = 0.01
    """Perturb when the step moves less than this share of its length."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "noise_radius", "noise_period")

    def init(self, task: Task, x: Tensor) -> PerturbedPoint:
        return PerturbedPoint(x, torch.zeros(len(x), dtype=torch.int64, device=x.device))

    def step(self, task: Task, state: PerturbedPoint, t: int) -> tuple[PerturbedPoint, Tensor]:
        value, _, gradient = task.evaluate(state.x)
        move = self.move(task, gradient, t)
        x = task.space.project(state.x + move)
        stalled = row_norm(x - state.x) <= self.tolerance * row_norm(move)
        perturb = stalled & (t - state.last_noise >= self.noise_period)
        if t >= self.noise_period and bool(perturb.any()):
            noisy = task.space.project(x + task.space.radius * self._noise(task, t, x))
            x = torch.where(per_row(perturb, x), noisy, x)
        return PerturbedPoint(x, torch.where(perturb, t, state.last_noise)), value

    def _noise(self, task: Task, t: int, x: Tensor) -> Tensor:
        """Uniform in the ball of `noise_radius`, measured as root mean square."""
        random, n = task.random.fold(t), x[0].numel()
        direction = normalized(random.fold(0).normal(x.shape[1:], x.dtype), "rms")
        depth = random.fold(1).uniform((), x.dtype).pow(1 / n)
        return self.noise_radius * per_row(depth, x) * direction
