"""Sign ascent with the activation-descent gradient."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from facetwalk import normals
from facetwalk.batching import laid_out_like
from facetwalk.gradients import leaking_outputs
from facetwalk.normals import NormalsMethod
from facetwalk.sites import pattern_of
from facetwalk.solvers.base import Task, require_positive
from facetwalk.solvers.scheduled import Number
from facetwalk.solvers.sign import MovingPoint, Sign
from facetwalk.types import InputError, NotAffineWarning


@dataclass
class LeakingPoint(MovingPoint):
    norms: list[Tensor]
    """Norms of the hyperplane normals at each site, `(B, *site.shape)`."""


@dataclass(frozen=True, kw_only=True)
class ActivationDescent(Sign):
    """Sign ascent whose gradient also sees dead neurons that are near switching on.

    See `facetwalk.gradients`. The kernel's width falls linearly to zero; from then on the
    gradient is the exact one. The width is a share of the space's own size, so one setting serves
    images with eps 1/255 and boxes of any size.
    """

    width: float = 0.015
    """The kernel's width at first, as a share of how far the space reaches."""
    annealing: float = 0.3
    """Share of the steps in which the width falls to zero."""
    normals: NormalsMethod = "probed"
    """How norms are measured: `exact`, `probed`, or `auto` (exact up to 128 inputs)."""
    probes: int = 4
    """Random directions of one measurement, if probed."""
    refresh: int = 100
    """Steps, also over several rounds, after which norms are measured again, where needed."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "width", "probes", "refresh")
        if not 0 < self.annealing <= 1:
            raise InputError(
                f"ActivationDescent.annealing must be a share in (0, 1]; it is {self.annealing}"
            )

    def init(self, task: Task, x: Tensor) -> LeakingPoint:
        point = super().init(task, x)
        return LeakingPoint(point.x, point.momentum, self._norms(task, x, 0))

    def again(self, task: Task, x: Tensor, before: Any, steps: range) -> LeakingPoint:
        point = super().init(task, x)
        due = steps.stop // self.refresh > steps.start // self.refresh
        known = isinstance(before, LeakingPoint) and not due
        norms = before.norms if known else self._norms(task, x, steps.stop)
        return LeakingPoint(point.x, point.momentum, norms)

    def numbers(self, t: int) -> tuple[float, ...]:
        width = self.width * (1 - t / (self.annealing * self.steps))
        return (*super().numbers(t), width) if width > 0 else super().numbers(t)

    def prepare(self, task: Task, state: LeakingPoint, t: int) -> LeakingPoint:
        if t == 0 or t % self.refresh or len(self.numbers(t)) == 1:
            return state
        return replace(state, norms=self._norms(task, state.x, t))

    def move(self, task: Task, state: Any, *numbers: Number) -> tuple[LeakingPoint, Tensor]:
        if len(numbers) == 1:
            point, value = super().move(task, state, *numbers)
        else:
            size, width = numbers
            sites, _ = task.sites(state.x)
            value, _, gradient = task.evaluate(
                state.x, lambda x: leaking_outputs(sites, x, state.norms, width)
            )
            point = self.follow(task, state, gradient, size)
        return LeakingPoint(point.x, point.momentum, state.norms), value

    def _norms(self, task: Task, x: Tensor, t: int) -> list[Tensor]:
        """Norms at the first member of each population, for all its members."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotAffineWarning)  # near x is where they are used
            sites, affine = task.sites(x)
        leaders, x = task.leaders(), x[:: task.mates]
        sites = sites.on(leaders.model)
        seen = sites.pre_activations(x)[1]
        gates = pattern_of(sites, seen).gates(x.dtype)
        scale = leaders.space.scale
        if normals.resolve(self.normals, x[0].numel()) == "exact":
            probes = x[0].numel()
            norms = normals.exact(sites, x, gates, affine, scale)
        else:
            probes = self.probes
            random = leaders.random.fold(t)
            norms = normals.probed(sites, x, gates, random, self.probes, affine, scale)
        task.passes.probe += -(-probes // task.mates)
        smallest = torch.finfo(x.dtype).tiny
        everyone = [norm.clamp_min_(smallest).repeat_interleave(task.mates, 0) for norm in norms]
        return [laid_out_like(h, norm) for h, norm in zip(seen, everyone, strict=True)]
