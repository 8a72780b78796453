"""ADR-GD: activation-descent regularised gradient ascent (Yu and Gao, ICML 2024), Algorithm 1."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any, ClassVar, Literal, Self

import torch
from torch import Tensor

from facetwalk import normals, surrogate
from facetwalk.batching import map_tensors, per_row, row_norm
from facetwalk.normals import NormalsMethod
from facetwalk.sites import Sites, SiteSelection
from facetwalk.solvers.adr_gd_crossing import Crossing, HalfGated
from facetwalk.solvers.adr_gd_penalty import EveryNeuron, Penalty, WorstNeurons
from facetwalk.solvers.adr_gd_settings import EXPERIMENTS, PRESETS
from facetwalk.solvers.base import Task, require_positive
from facetwalk.solvers.scheduled import Number, ScheduledSolver
from facetwalk.surrogate import Reduction
from facetwalk.types import InputError

_TINIEST_NORMAL = 1e-12

_BETWEEN_PROBES = 25
"""Steps between two probed estimates of normals."""

_REMEMBERED = 4
"""Probed estimates of normals that are averaged, about."""

_NO_DIRECTION = 1e-12
"""A gate gradient no longer than this comes from saturated sigmoids and is not stretched."""


@dataclass
class AdrGdState:
    x: Tensor
    eta: Tensor
    """The gates of all sites, `(B, neurons)`; steps move them in place."""
    beta: Tensor
    """The penalty weight, `(B,)`."""
    beta_gradient: Tensor
    """What the penalty weight's gradient has summed up to, `(B,)`."""
    last_noise: Tensor
    """The step at which each site was last perturbed, float32 `(B, sites)`."""
    noise: Tensor
    """What a perturbation adds to the gates' move, `(B, neurons)`: new every `noise_period` steps,
    so that no site gets the same twice."""
    inverse_norms: Tensor
    """One over the norms of the surrogate's normals, `(B, neurons)`: of a mean over the latest
    estimates."""
    firsts: Tensor
    """The number of each site's first neuron among all, int64 `(B, sites)`."""
    sites: Sites
    affine: bool
    """Whether the network is affine once its gates are frozen."""


@dataclass
class Gradients:
    """What one pass through the plain and the surrogate network gives."""

    value: Tensor
    """The score of the plain network, `(B,)`."""
    x: Tensor
    eta: Tensor
    """Divided by the sharpness."""
    penalty: Tensor
    """Sum of `L_i` over sites: the gradient of L* in beta, `(B,)`."""


@dataclass(frozen=True, kw_only=True)
class AdrGd(ScheduledSolver):
    """ADR-GD, with the paper's settings by default; see `preset` and `for_experiment`.

    Beside the input it moves a gate for each neuron through a surrogate network, and a penalty
    pulls input and gates together. Sizes of steps are in the input's own units, as in the paper.
    """

    gradients_per_step: ClassVar[int] = 2

    step_size: float = 0.5
    """alpha_x: length of an input step."""
    gate_step: float = 1.0
    """alpha_eta (alpha_sigma in the appendix): length of a gate step."""
    penalty_weight: float = 1.0
    """beta_0: the first weight of the pattern penalty."""
    weight_step: float = 0.01
    """alpha_beta: how fast the weight rises with the penalty."""
    weight_decay: float = 0.01
    """gamma: how much the weight falls where the penalty is below `weight_tolerance`."""
    weight_tolerance: float = 0.001
    """delta_beta."""
    noise_scale: float = 0.1
    """r: size of the noise on gates."""
    noise_period: int = 25
    """T_p: at least so many steps between two perturbations of a site."""
    gate_tolerance: float = 0.0001
    """delta: perturb only where the gate gradient's norm is at most this."""
    sharpness: float = 2000.0
    """alpha: steepness of the sigmoid."""

    sites: SiteSelection = "all"
    """Which sites get gates; the others stay plain ReLUs."""
    normals: NormalsMethod = "auto"
    """Normal norms: `exact` (one probe for each input), `probed`, or by the input's size."""
    probes: int = 8
    """Random directions for each probed estimate."""
    normals_every: int | None = None
    """Steps between two estimates; by default 25 if probed, and if exact as many as keep the cost
    at 16 probes a step."""

    objective_moves_gates: bool = True
    """False is ablation M1: the objective's gradient does not reach the gates."""
    penalty_moves_input: bool = True
    """False is ablation M2: the penalty's gradient does not reach the input."""
    normalize_by_normals: bool = True
    """False is ablation M3: nothing is divided by the norms of normals."""
    perturb: bool = True
    """False is ablation M4: no noise on gates."""

    penalty_reduction: Reduction = "sum"
    """How a site's neurons make one penalty."""
    gate_margin: float = 0.5
    """Gates start this far from 1/2, on the side of the input's pattern."""
    gate_bounds: tuple[float, float] = (0.0, 1.0)
    """Gates are clamped to this range."""
    weight_bounds: tuple[float, float] = (0.0, float("inf"))
    """The penalty weight is clamped to this range; a negative weight would reward disagreement."""
    normalize_gradients: Literal["always", "above-one"] = "always"
    """Scale a gradient (the input's, each site's) to length 1, always or if it is longer."""
    output_scale: Literal["none", "normal", "logits"] = "none"
    """Divide the surrogate's score by the norm of its own input gradient (`normal`), or its
    outputs by their norm (`logits`)."""
    gate_reset_every: int | None = None
    """Set the gates back to the input's pattern every so many steps."""
    own_gate_in_normal: bool = False
    """Multiply a normal's norm by the neuron's own gate."""
    normal_floor: float = _TINIEST_NORMAL
    """Normals' norms below this count as this."""
    accumulate_weight_gradient: bool = False
    """Sum the penalty weight's gradient over all steps so far."""
    record_only_noise_steps: bool = False
    """Let only the start, the end and steps that add noise count for the best point."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(
            self, "step_size", "gate_step", "sharpness", "noise_period", "probes", "normal_floor"
        )
        for name in ("gate_bounds", "weight_bounds"):
            low, high = getattr(self, name)
            if not low < high:
                raise InputError(f"AdrGd.{name} must be (low, high) with low < high")

    @classmethod
    def preset(cls, name: str) -> Self:
        """`paper`; or the authors' code: `released` (random networks), `released-attack`.

        >>> AdrGd.preset("released").penalty_reduction
        'max'
        """
        if name not in PRESETS:
            raise InputError(f"no preset is named {name!r}; there are {', '.join(PRESETS)}")
        return cls(**PRESETS[name])

    @classmethod
    def for_experiment(cls, name: str, preset: str = "paper") -> Self:
        """A preset with the parameters that the paper's appendix gives for an experiment.

        >>> AdrGd.for_experiment("mnist-untargeted").steps
        250
        """
        if name not in EXPERIMENTS:
            raise InputError(f"no experiment is named {name!r}; there are {', '.join(EXPERIMENTS)}")
        return replace(cls.preset(preset), **EXPERIMENTS[name])

    def init(self, task: Task, x: Tensor) -> AdrGdState:
        every, affine = task.sites(x)
        sites = every.select(self.sites)
        affine = affine and len(sites) == len(every)  # ReLUs that are not selected do not freeze
        eta = self._matching_gates(task, sites, x)
        weight = torch.full((len(x),), self.penalty_weight, dtype=x.dtype, device=x.device)
        return AdrGdState(
            x=x,
            eta=eta,
            beta=weight,
            beta_gradient=torch.zeros_like(weight),
            last_noise=torch.ones(len(x), len(sites), device=x.device),
            noise=torch.zeros_like(eta),
            inverse_norms=self._inverse(self._estimate(task, sites, x, eta, affine, 0)),
            firsts=_firsts(sites, x),
            sites=sites,
            affine=affine,
        )

    @property
    def operations(self) -> Hashable:
        return replace(self, steps=1)

    def numbers(self, t: int) -> tuple[float, ...]:
        """The number of the step, as Algorithm 1 counts: from 1; and that of the latest one whose
        noise is old enough."""
        return float(t + 1), float(t + 1 - self.noise_period)

    def prepare(self, task: Task, state: AdrGdState, t: int) -> AdrGdState:
        if self.gate_reset_every and (t + 1) % self.gate_reset_every == 0:
            sites = state.sites.on(task.model)
            state = replace(state, eta=self._matching_gates(task, sites, state.x))
        return self._with_probed_normals(task, state, t)

    def renews(self, task: Task, t: int) -> tuple[str, ...]:
        inputs = math.prod(task.space.shape)
        every = self.normals_every or -(-inputs // 16)
        measures = self._measures(t, every) and self._is_exact(inputs)
        draws = self.perturb and t > 0 and t % self.noise_period == 0
        return ("normals",) * measures + ("noise",) * draws

    def renew(
        self, task: Task, state: AdrGdState, what: tuple[str, ...], *numbers: Number
    ) -> AdrGdState:
        if "normals" in what:
            sites = state.sites.on(task.model)
            norms = self._estimate(task, sites, state.x, state.eta, state.affine, 0)
            state = replace(state, inverse_norms=self._inverse(norms))
        return self._with_noise(task, state, numbers[0]) if "noise" in what else state

    def move(self, task: Task, state: Any, *numbers: Number) -> tuple[AdrGdState, Tensor]:
        now, long_ago = numbers
        state = replace(state, sites=state.sites.on(task.model))
        gradients = self._gradients(task, state)
        x = torch.addcdiv(
            state.x, gradients.x, self._input_divisor(gradients.x), value=-self.step_size
        )
        lengths = torch.stack([row_norm(part) for part in state.sites.parts(gradients.eta)], 1)
        divisor = state.sites.spread(self._gate_divisor(lengths))
        eta = state.eta.addcdiv_(gradients.eta, divisor, value=-self.gate_step)
        value = gradients.value
        if self.perturb or self.record_only_noise_steps:
            small = lengths <= self.gate_tolerance / self.sharpness
            noisy = small & (state.last_noise <= long_ago)
            if self.perturb:
                where = state.sites.spread(noisy.to(eta.dtype))
                eta.addcmul_(state.noise, where, value=-self.gate_step)
                state = replace(state, last_noise=torch.where(noisy, now, state.last_noise))
            if self.record_only_noise_steps:
                value = torch.where(noisy.any(1) | (now <= 1), value, -torch.inf)
        return replace(
            self._with_moved_weight(state, gradients.penalty),
            x=task.space.project(x),
            eta=eta.clamp_(*self.gate_bounds),
        ), value

    def _matching_gates(self, task: Task, sites: Sites, x: Tensor) -> Tensor:
        """Gates on the side of the pattern of `x`."""
        task.passes.forward += 1
        with torch.no_grad():
            _, pre_activations = sites.pre_activations(x)
        live = sites.join(pre_activations) > 0
        low, high = self.gate_bounds
        margin = self.gate_margin
        off, on = (min(max(0.5 + side, low), high) for side in (-margin, margin))
        return live.to(x.dtype).mul_(on - off).add_(off)

    def _gradients(self, task: Task, state: AdrGdState) -> Gradients:
        """Gradients of L*, from one pass over a batch whose halves are plain and surrogate."""
        task.passes.forward += 2
        task.passes.backward += 2
        sites, rows = state.sites, len(state.x)
        both = torch.cat([state.x, state.x]).requires_grad_()
        lean = 0.5 - state.eta
        gate = (lean * -self.sharpness).sigmoid_()
        of_gate = torch.empty_like(gate)
        pairs = zip(sites.parts(gate), sites.parts(of_gate), strict=True)
        crossings = [Crossing(*pair) for pair in pairs]
        with torch.enable_grad():
            outputs = sites.run(both, partial(_cross, sites, crossings))
            score = task.guide(map_tensors(lambda y: self._scaled(y[rows:]), outputs))
        penalty = self._penalty(state, sites.join([each.plain for each in crossings]), lean, gate)
        if self.penalty_moves_input:
            for i, crossing in enumerate(crossings):
                crossing.push = partial(penalty.push, i)
        (of_both,) = torch.autograd.grad(score, both, torch.full_like(score, -1))
        by_penalty, by_objective = of_both.chunk(2)
        for crossing in crossings:
            if not (crossing.came_back and self.objective_moves_gates):
                crossing.of_gate.zero_()
        of_eta = torch.ops.aten.sigmoid_backward.grad_input(of_gate, gate, grad_input=of_gate)
        if self.output_scale == "normal" and self.normalize_by_normals:
            normal = row_norm(by_objective).clamp_min_(_TINIEST_NORMAL)
            by_objective = by_objective / per_row(normal, by_objective)
            of_eta /= normal[:, None]
        penalty.pull(of_eta, 1 / self.sharpness)
        with torch.no_grad():
            value = task.objective(map_tensors(lambda y: y[:rows], outputs))
        of_x = torch.nan_to_num_(by_objective + by_penalty, nan=0.0)
        return Gradients(value, of_x, of_eta, penalty.value)

    def _penalty(self, state: AdrGdState, h: Tensor, lean: Tensor, gate: Tensor) -> Penalty:
        inverse = state.inverse_norms
        if self.own_gate_in_normal and self.normalize_by_normals:
            inverse = (inverse / gate).clamp_max_(1 / self.normal_floor)
        if self.penalty_reduction == "sum":
            return EveryNeuron(state.sites, h, lean, inverse, state.beta)
        return WorstNeurons(state.sites, state.firsts, h, lean, inverse, state.beta)

    def _scaled(self, outputs: Tensor) -> Tensor:
        if self.output_scale != "logits":
            return outputs
        length = row_norm(outputs.detach()).clamp_min(_TINIEST_NORMAL)
        return outputs / per_row(length, outputs)

    def _is_exact(self, inputs: int) -> bool:
        return normals.resolve(self.normals, inputs) == "exact"

    def _measures(self, t: int, every: int) -> bool:
        """Whether normals are measured anew before the t-th step."""
        return self.normalize_by_normals and t > 0 and t % every == 0

    def _with_probed_normals(self, task: Task, state: AdrGdState, t: int) -> AdrGdState:
        every = self.normals_every or _BETWEEN_PROBES
        if not self._measures(t, every) or self._is_exact(math.prod(task.space.shape)):
            return state
        sites = state.sites.on(task.model)
        norms = self._estimate(task, sites, state.x, state.eta, state.affine, t)
        share = 1 / min(t // every + 1, _REMEMBERED)
        norms = normals.averaged(state.inverse_norms.reciprocal(), norms, share)
        return replace(state, inverse_norms=self._inverse(norms))

    def _inverse(self, norms: Tensor) -> Tensor:
        floor = _TINIEST_NORMAL if self.own_gate_in_normal else self.normal_floor
        return norms.clamp_min(floor).reciprocal_()

    def _estimate(
        self, task: Task, sites: Sites, x: Tensor, eta: Tensor, affine: bool, t: int
    ) -> Tensor:
        """Norms of the surrogate's normals, `(B, neurons)`; 1 where nothing is divided by them."""
        if not self.normalize_by_normals:
            return torch.ones_like(eta)
        gates = sites.split(surrogate.sigmoid(eta, self.sharpness))
        if self._is_exact(x[0].numel()):
            task.passes.probe += x[0].numel()
            return sites.join(normals.exact(sites, x, gates, affine))
        task.passes.probe += self.probes
        random = task.random.fold(1, t)
        return sites.join(normals.probed(sites, x, gates, random, self.probes, affine))

    def _input_divisor(self, gradient: Tensor) -> Tensor:
        """What to divide input gradients by, `(B, 1, ..., 1)`."""
        if self.normalize_gradients == "always":
            length = row_norm(gradient.double())
            tiny = torch.finfo(gradient.dtype).tiny
            return per_row(length.to(gradient.dtype).clamp_min_(tiny), gradient)
        return per_row(row_norm(gradient).clamp_min_(1.0), gradient)

    def _gate_divisor(self, lengths: Tensor) -> Tensor:
        """What to divide gate gradients of these lengths by, `(B, sites)`: all over sharpness."""
        one = 1 / self.sharpness
        if self.normalize_gradients == "always":
            return lengths.masked_fill(lengths <= _NO_DIRECTION * one, one)
        return lengths.clamp_min(one)

    def _with_noise(self, task: Task, state: AdrGdState, now: Number) -> AdrGdState:
        """With the noise of a period that begins: which rows use it, only the device knows."""
        period = (now - 1) / self.noise_period
        period = period.round().long() if isinstance(period, Tensor) else round(period)
        noise = task.random.fold(2, period).normal(state.eta.shape[1:], state.eta.dtype)
        return replace(state, noise=noise.mul_(self.noise_scale))

    def _with_moved_weight(self, state: AdrGdState, gradient: Tensor) -> AdrGdState:
        if self.accumulate_weight_gradient:
            gradient = gradient + state.beta_gradient
            state = replace(state, beta_gradient=gradient)
        move = self.weight_step * gradient
        move.masked_fill_(gradient <= self.weight_tolerance, -self.weight_decay)
        return replace(state, beta=move.add_(state.beta).clamp_(*self.weight_bounds))


def _cross(sites: Sites, crossings: list[Crossing], i: int, z: Tensor) -> Tensor:
    site = sites.sites[i]
    return site.unflat(HalfGated.apply(site.flat(z), crossings[i]))  # pyright: ignore


def _firsts(sites: Sites, x: Tensor) -> Tensor:
    starts = accumulate((site.neurons for site in sites.sites[:-1]), initial=0)
    return torch.tensor([list(starts)], device=x.device).repeat(len(x), 1)
