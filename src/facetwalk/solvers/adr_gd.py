"""ADR-GD: activation-descent regularised gradient ascent (Yu and Gao, ICML 2024), Algorithm 1."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import torch
from torch import Tensor

from facetwalk import normals, surrogate
from facetwalk.batching import map_tensors, per_row, row_norm, unit_rows
from facetwalk.normals import NormalsMethod
from facetwalk.sites import Sites, SiteSelection
from facetwalk.solvers.adr_gd_settings import EXPERIMENTS, PRESETS
from facetwalk.solvers.base import Task, require_positive
from facetwalk.solvers.scheduled import Number, ScheduledSolver
from facetwalk.surrogate import Reduction
from facetwalk.types import InputError

_TINIEST_NORMAL = 1e-12

_REMEMBERED = 4
"""Probed estimates of normals that are averaged, about."""

_NO_DIRECTION = 1e-12
"""A gate gradient no longer than this comes from saturated sigmoids and is not stretched."""


@dataclass
class AdrGdState:
    x: Tensor
    eta: Tensor
    """The gates of all sites, `(B, neurons)`."""
    beta: Tensor
    """The penalty weight, `(B,)`."""
    beta_gradient: Tensor
    """What the penalty weight's gradient has summed up to, `(B,)`."""
    last_noise: Tensor
    """The step at which each site was last perturbed, float32 `(B, sites)`."""
    noise: Tensor
    """What a perturbation adds to the gates' move, `(B, neurons)`: new every `noise_period` steps,
    so that no site gets the same twice."""
    norms: Tensor
    """Of the surrogate's normals, `(B, neurons)`: a mean over the latest estimates."""
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
    penalty: Tensor
    """Sum of `L_i` over sites: the gradient of L* in beta, `(B,)`."""


@dataclass
class _Crossing:
    """What one site hands over between the passes: made forward, filled in, used backward."""

    plain: Tensor
    """Pre-activations of the plain half, `(B, n)`."""
    gated: Tensor
    """Pre-activations of the gated half."""
    push: Tensor | None = None
    """The penalty's gradient on `plain`: set between the passes, added in the backward one."""
    of_gated: Tensor | None = None
    """The loss's gradient on the gated half's output: known after the backward pass."""

    def slope(self) -> Tensor:
        """`of_gated`, or zero for a site that the objective does not depend on."""
        return torch.zeros_like(self.gated) if self.of_gated is None else self.of_gated


class _HalfGated(torch.autograd.Function):
    """ReLU on the first half of a batch, gates on the second: a site of both networks at once.

    The penalty needs no graph of its own: its gradient enters as `push`.
    """

    @staticmethod
    def forward(ctx: Any, z: Tensor, gate: Tensor, crossings: list[_Crossing]) -> Tensor:
        rows = len(gate)
        z = z.detach()
        ctx.gate, ctx.crossing = gate, _Crossing(z[:rows], z[rows:])
        crossings.append(ctx.crossing)
        out = torch.empty_like(z)
        torch.clamp_min(ctx.crossing.plain, 0, out=out[:rows])
        torch.mul(ctx.crossing.gated, gate, out=out[rows:])
        return out

    @staticmethod
    def backward(ctx: Any, *of_outputs: Tensor) -> tuple[Tensor, None, None]:
        crossing, gate, of_output = ctx.crossing, ctx.gate, of_outputs[0]
        rows = len(gate)
        crossing.of_gated = of_output[rows:]
        of_z = torch.empty_like(of_output)
        surrogate.masked(of_output[:rows], crossing.plain, out=of_z[:rows])
        if crossing.push is not None:
            of_z[:rows].add_(crossing.push)
        torch.mul(crossing.of_gated, gate, out=of_z[rows:])
        return of_z, None, None


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
            norms=self._estimate(task, sites, x, eta, affine, 0),
            sites=sites,
            affine=affine,
        )

    @property
    def operations(self) -> Hashable:
        return replace(self, steps=1)

    def numbers(self, t: int) -> tuple[float, ...]:
        """The number of the step, as Algorithm 1 counts: from 1."""
        return (float(t + 1),)

    def prepare(self, task: Task, state: AdrGdState, t: int) -> AdrGdState:
        if self.gate_reset_every and (t + 1) % self.gate_reset_every == 0:
            sites = state.sites.on(task.model)
            state = replace(state, eta=self._matching_gates(task, sites, state.x))
        return self._with_noise(task, self._with_fresh_normals(task, state, t), t)

    def move(self, task: Task, state: Any, *numbers: Number) -> tuple[AdrGdState, Tensor]:
        (now,) = numbers
        state = replace(state, sites=state.sites.on(task.model))
        gradients = self._gradients(task, state)
        x = state.x - self.step_size * self._input_move(gradients.x)
        lengths = torch.stack([row_norm(g) for g in state.sites.parts(gradients.eta)], 1)
        move = gradients.eta / state.sites.spread(self._gate_divisor(lengths))
        noisy = (state.last_noise <= now - self.noise_period) & (lengths <= self.gate_tolerance)
        if self.perturb:
            move.addcmul_(state.noise, state.sites.spread(noisy.to(move.dtype)))
            state = replace(state, last_noise=torch.where(noisy, now, state.last_noise))
        beta, beta_gradient = self._moved_weight(state, gradients.penalty)
        value = gradients.value
        if self.record_only_noise_steps:
            value = torch.where(noisy.any(1) | (now <= 1), value, -torch.inf)
        return replace(
            state,
            x=task.space.project(x),
            eta=(state.eta - self.gate_step * move).clamp_(*self.gate_bounds),
            beta=beta,
            beta_gradient=beta_gradient,
        ), value

    def _matching_gates(self, task: Task, sites: Sites, x: Tensor) -> Tensor:
        """Gates on the side of the pattern of `x`."""
        task.passes.forward += 1
        with torch.no_grad():
            _, pre_activations = sites.pre_activations(x)
        side = 2 * (sites.join(pre_activations) > 0).to(x.dtype) - 1
        return (0.5 + self.gate_margin * side).clamp_(*self.gate_bounds)

    def _gradients(self, task: Task, state: AdrGdState) -> Gradients:
        """Gradients of L*, from one pass over a batch whose halves are plain and surrogate."""
        task.passes.forward += 2
        task.passes.backward += 2
        sites, rows, beta = state.sites, len(state.x), state.beta[:, None]
        both = torch.cat([state.x, state.x]).requires_grad_()
        gate = surrogate.sigmoid(state.eta, self.sharpness)
        gates = sites.parts(gate)
        crossings: list[_Crossing] = []
        with torch.enable_grad():
            outputs = sites.run(
                both, lambda i, z: _HalfGated.apply(z.flatten(1), gates[i], crossings)
            )
            of_surrogate = map_tensors(lambda y: self._scaled(y[rows:]), outputs)
            loss = -task.guide(of_surrogate).sum()
        norms = self._norms(state, gate)
        h = torch.cat([crossing.plain for crossing in crossings], 1)
        pull = surrogate.counted_pull(
            h, (0.5 - state.eta) / norms, self.penalty_reduction, [site.neurons for site in sites]
        )
        if self.penalty_moves_input:
            for crossing, push in zip(crossings, sites.parts(beta * pull), strict=True):
                crossing.push = push
        (of_both,) = torch.autograd.grad(loss, both)
        by_penalty, by_objective = of_both.chunk(2)
        cost = h * pull
        of_eta = surrogate.masked(h / norms, cost) * -beta
        if self.objective_moves_gates:
            of_eta += self._objective_on_gates(crossings, gate, by_objective)
        if self._divides_by_normal:
            by_objective = by_objective / _normal_of(by_objective)
        with torch.no_grad():
            value = task.objective(map_tensors(lambda y: y[:rows], outputs))
        of_x = torch.nan_to_num(by_objective + by_penalty, nan=0.0)
        return Gradients(value, of_x, of_eta, penalty=cost.sum(1))

    @property
    def _divides_by_normal(self) -> bool:
        return self.output_scale == "normal" and self.normalize_by_normals

    def _objective_on_gates(
        self, crossings: list[_Crossing], gate: Tensor, by_objective: Tensor
    ) -> Tensor:
        """The gradient of `-J` on all gates through the sigmoid, `(B, neurons)`."""
        gated = torch.cat([crossing.gated for crossing in crossings], 1)
        slopes = torch.cat([crossing.slope() for crossing in crossings], 1)
        through = torch.ops.aten.sigmoid_backward(gated * slopes, gate) * self.sharpness
        if self._divides_by_normal:
            through = through / _normal_of(by_objective.flatten(1))
        return through

    def _scaled(self, outputs: Tensor) -> Tensor:
        if self.output_scale != "logits":
            return outputs
        length = row_norm(outputs.detach()).clamp_min(_TINIEST_NORMAL)
        return outputs / per_row(length, outputs)

    def _norms(self, state: AdrGdState, gate: Tensor) -> Tensor:
        if not self.normalize_by_normals:
            return torch.ones_like(gate)
        norms = state.norms * gate if self.own_gate_in_normal else state.norms
        return norms.clamp_min(self.normal_floor)

    def _with_fresh_normals(self, task: Task, state: AdrGdState, t: int) -> AdrGdState:
        exact = normals.resolve(self.normals, state.x[0].numel()) == "exact"
        every = self.normals_every or (-(-state.x[0].numel() // 16) if exact else 25)
        if not self.normalize_by_normals or t == 0 or t % every:
            return state
        sites = state.sites.on(task.model)
        estimate = self._estimate(task, sites, state.x, state.eta, state.affine, t)
        share = 1.0 if exact else 1 / min(t // every + 1, _REMEMBERED)
        return replace(state, norms=normals.averaged(state.norms, estimate, share))

    def _estimate(
        self, task: Task, sites: Sites, x: Tensor, eta: Tensor, affine: bool, t: int
    ) -> Tensor:
        """Norms of the surrogate's normals, `(B, neurons)`."""
        gates = sites.split(surrogate.sigmoid(eta, self.sharpness))
        if normals.resolve(self.normals, x[0].numel()) == "exact":
            task.passes.probe += x[0].numel()
            return sites.join(normals.exact(sites, x, gates, affine))
        task.passes.probe += self.probes
        random = task.random.fold(1, t)
        return sites.join(normals.probed(sites, x, gates, random, self.probes, affine))

    def _input_move(self, gradient: Tensor) -> Tensor:
        if self.normalize_gradients == "always":
            return unit_rows(gradient)
        return gradient / per_row(row_norm(gradient).clamp_min_(1.0), gradient)

    def _gate_divisor(self, lengths: Tensor) -> Tensor:
        """What to divide gate gradients of these lengths by, `(B, sites)`."""
        if self.normalize_gradients == "always":
            return torch.where(lengths > _NO_DIRECTION, lengths, 1.0)
        return lengths.clamp_min(1.0)

    def _with_noise(self, task: Task, state: AdrGdState, t: int) -> AdrGdState:
        """Draw new noise at the start of each period: which rows use it, only the device knows."""
        period, since = divmod(t, self.noise_period)
        if not self.perturb or since or not period:
            return state
        noise = task.random.fold(2, period).normal(state.eta.shape[1:], state.eta.dtype)
        return replace(state, noise=noise.mul_(self.noise_scale))

    def _moved_weight(self, state: AdrGdState, penalty: Tensor) -> tuple[Tensor, Tensor]:
        gradient = penalty + state.beta_gradient if self.accumulate_weight_gradient else penalty
        move = self.weight_step * gradient
        move.masked_fill_(gradient <= self.weight_tolerance, -self.weight_decay)
        return (state.beta + move).clamp_(*self.weight_bounds), gradient


def _normal_of(gradient: Tensor) -> Tensor:
    """The norm of each row, `(B, 1, ..., 1)`: of the output's normal, for its gradient."""
    return per_row(row_norm(gradient).clamp_min_(_TINIEST_NORMAL), gradient)
