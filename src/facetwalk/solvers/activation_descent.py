"""Sign ascent with the activation-descent gradient."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from facetwalk import normals
from facetwalk.batching import laid_out_like
from facetwalk.gradients import leaking_outputs
from facetwalk.normals import NormalsMethod
from facetwalk.sites import Sites, pattern_of
from facetwalk.solvers.base import Round, Task, require_positive
from facetwalk.solvers.scheduled import Number
from facetwalk.solvers.sign import MovingPoint, Sign
from facetwalk.types import InputError, NotAffineWarning


@dataclass
class LeakingPoint(MovingPoint):
    norms: list[Tensor]
    """Norms of the hyperplane normals at each site, `(B, *site.shape)`; not measured where no step
    has looked at them."""


@dataclass(frozen=True, kw_only=True)
class ActivationDescent(Sign):
    """Sign ascent whose gradient also sees dead neurons that are near switching on.

    See `facetwalk.gradients`. The kernel's width falls linearly to zero; from then on the
    gradient is the exact one. The width is a share of the space's own size, so one setting serves
    images with eps 1/255 and boxes of any size.
    """

    width: float = 0.015
    """The kernel's width at first, as a share of the space's `scale`; zero for exact gradients
    throughout."""
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
        require_positive(self, "probes", "refresh")
        if not self.width >= 0:
            raise InputError(f"ActivationDescent.width must be at least 0; it is {self.width}")
        if not 0 < self.annealing <= 1:
            raise InputError(
                f"ActivationDescent.annealing must be a share in (0, 1]; it is {self.annealing}"
            )

    def init(self, task: Task, x: Tensor) -> LeakingPoint:
        return self._begin(task, x, 0)

    def _begin(self, task: Task, x: Tensor, t: int) -> LeakingPoint:
        """The state at `x`, after `t` steps, with norms of its own."""
        point = super().init(task, x)
        norms = self._norms(task, x, t) if self.width else _placeholders(task, x)
        return LeakingPoint(point.x, point.momentum, norms)

    def again(self, task: Task, x: Tensor, before: Round) -> LeakingPoint:
        steps, known = before.steps, isinstance(before.state, LeakingPoint)
        if self.width:
            due = steps.stop // self.refresh > steps.start // self.refresh
            measured = isinstance(before.solver, ActivationDescent) and before.solver.width > 0
            known = known and measured and not due
        if not known:
            return self._begin(task, x, steps.stop)
        point = super().init(task, x)
        return LeakingPoint(point.x, point.momentum, before.state.norms)

    def numbers(self, t: int) -> tuple[float, ...]:
        """The step size, the momentum and, while there is a kernel, its width."""
        width = self._width(t)
        return (*super().numbers(t), width) if width > 0 else super().numbers(t)

    def _width(self, t: int) -> float:
        return self.width * (1 - t / (self.annealing * self.steps))

    def prepare(self, task: Task, state: LeakingPoint, t: int) -> LeakingPoint:
        if t == 0 or t % self.refresh or self._width(t) <= 0:
            return state
        return replace(state, norms=self._norms(task, state.x, t))

    def move(self, task: Task, state: Any, *numbers: Number) -> tuple[LeakingPoint, Tensor]:
        size, momentum, *widths = numbers
        forward = None
        if widths:
            sites, _ = task.sites(state.x)
            forward = partial(leaking_outputs, sites, norms=state.norms, width=widths[0])
        value, _, gradient = task.evaluate(state.x, forward)
        point = self.follow(task, state, gradient, size, momentum)
        return LeakingPoint(point.x, point.momentum, state.norms), value

    def _norms(self, task: Task, x: Tensor, t: int) -> list[Tensor]:
        """Norms at the first member of each population, for all its members."""
        sites, affine = _sites(task, x)
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


def _sites(task: Task, x: Tensor) -> tuple[Sites, bool]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotAffineWarning)  # near x is where norms are used
        return task.sites(x)


def _placeholders(task: Task, x: Tensor) -> list[Tensor]:
    """What stands where norms would, as they would lie in memory; a pass of one row shows how."""
    seen = _sites(task, x)[0].pre_activations(x[:1])[1]
    return [laid_out_like(h, h.new_ones(len(x), *h.shape[1:])) for h in seen]
