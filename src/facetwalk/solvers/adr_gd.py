"""ADR-GD: activation-descent regularised gradient ascent (Yu and Gao, ICML 2024), Algorithm 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import torch
from torch import Tensor

from facetwalk import normals, surrogate
from facetwalk.batching import per_row, row_norm
from facetwalk.normals import NormalsMethod, RunningNormals
from facetwalk.sites import Sites, SiteSelection, audit, discover
from facetwalk.solvers.adr_gd_settings import EXPERIMENTS, PRESETS
from facetwalk.solvers.base import Solver, Task, require_positive
from facetwalk.streams import Streams
from facetwalk.surrogate import Reduction
from facetwalk.types import InputError

_TINIEST_NORMAL = 1e-12


@dataclass
class AdrGdState:
    x: Tensor
    etas: list[Tensor]
    """The gates of each site, `(B, *site.shape)`."""
    beta: Tensor
    """The penalty weight, `(B,)`."""
    beta_gradient: Tensor
    """What the penalty weight's gradient has summed up to, `(B,)`."""
    last_noise: list[Tensor]
    """For each site, the step of its last perturbation, int64 `(B,)`."""
    normals: RunningNormals
    sites: Sites
    affine: bool
    """Whether the network is affine once its gates are frozen."""


@dataclass
class Gradients:
    """What one pass through the plain and the surrogate network gives."""

    value: Tensor
    """The score of the plain network, `(B,)`."""
    x: Tensor
    etas: list[Tensor]
    penalty: Tensor
    """Sum of `L_i` over sites: the gradient of L* in beta, `(B,)`."""


@dataclass(frozen=True, kw_only=True)
class AdrGd(Solver):
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
    """Steps between two estimates; by default 1 if exact and 25 if probed."""

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
    """Let only steps that add noise count for the best point."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(
            self, "step_size", "gate_step", "sharpness", "noise_period", "probes", "normal_floor"
        )

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
        sites = discover(task.model, x)
        affine = audit(sites, x[:1], task.space.sample(task.random.fold(3))[:1]) is None
        sites = sites.select(self.sites)
        etas = self._matching_gates(task, sites, x)
        rows = len(x)
        return AdrGdState(
            x=x,
            etas=etas,
            beta=torch.full((rows,), self.penalty_weight, dtype=x.dtype, device=x.device),
            beta_gradient=torch.zeros(rows, dtype=x.dtype, device=x.device),
            last_noise=[torch.ones(rows, dtype=torch.int64, device=x.device) for _ in etas],
            normals=RunningNormals.start(self._estimate(task, sites, x, etas, affine, 0)),
            sites=sites,
            affine=affine,
        )

    def step(self, task: Task, state: AdrGdState, t: int) -> tuple[AdrGdState, Tensor]:
        now = t + 1  # Algorithm 1 counts from 1
        state = replace(state, sites=state.sites.on(task.model))
        if self.gate_reset_every and now % self.gate_reset_every == 0:
            state = replace(state, etas=self._matching_gates(task, state.sites, state.x))
        state = self._with_fresh_normals(task, state, t)
        gradients = self._gradients(task, state)
        x = state.x - self.step_size * self._normalized(gradients.x)
        noisy = self._noise_due(state, gradients, now)
        etas = self._moved_gates(task, state, gradients, noisy, now)
        beta, beta_gradient = self._moved_weight(state, gradients.penalty)
        last_noise = [
            torch.where(due, now, last) for due, last in zip(noisy, state.last_noise, strict=True)
        ]
        value = gradients.value
        if self.record_only_noise_steps:
            value = torch.where(torch.stack(noisy).any(0), value, -torch.inf)
        return replace(
            state,
            x=task.space.project(x),
            etas=etas,
            beta=beta,
            beta_gradient=beta_gradient,
            last_noise=last_noise,
        ), value

    def _matching_gates(self, task: Task, sites: Sites, x: Tensor) -> list[Tensor]:
        """Gates on the side of the pattern of `x`."""
        task.passes.forward += 1
        with torch.no_grad():
            _, pre_activations = sites.pre_activations(x)
        low, high = self.gate_bounds
        margin = self.gate_margin
        return [
            torch.where(h > 0, 0.5 + margin, 0.5 - margin).to(h.dtype).clamp(low, high)
            for h in pre_activations
        ]

    def _gradients(self, task: Task, state: AdrGdState) -> Gradients:
        """Gradients of L*, from one pass over a batch whose halves are plain and surrogate."""
        task.passes.forward += 2
        task.passes.backward += 2
        rows = len(state.x)
        both = torch.cat([state.x, state.x]).requires_grad_()
        for_objective = [eta.detach().requires_grad_() for eta in state.etas]
        for_penalty = [eta.detach().requires_grad_() for eta in state.etas]
        seen: list[Tensor] = []

        def half_gated(i: int, z: Tensor) -> Tensor:
            plain, gated = z[:rows], z[rows:]
            seen.append(plain)
            gate = surrogate.sigmoid(for_objective[i], self.sharpness)
            return torch.cat([torch.relu(plain), gate * gated])

        with torch.enable_grad():
            outputs = state.sites.run(both, half_gated)
            score = task.objective(self._scaled(outputs[rows:]))
            penalties = [
                surrogate.penalty(
                    h if self.penalty_moves_input else h.detach(), eta, norm, self.penalty_reduction
                )
                for h, eta, norm in zip(seen, for_penalty, self._norms(state), strict=True)
            ]
            loss = surrogate.lagrangian(score, penalties, state.beta)
            of_both, *of_etas = torch.autograd.grad(
                loss.sum(), [both, *for_objective, *for_penalty], materialize_grads=True
            )
        by_penalty, by_objective = of_both[:rows], of_both[rows:]
        objective_etas, penalty_etas = of_etas[: len(seen)], of_etas[len(seen) :]
        if self.output_scale == "normal" and self.normalize_by_normals:
            length = row_norm(by_objective).clamp_min(_TINIEST_NORMAL)
            by_objective = by_objective / per_row(length, by_objective)
            objective_etas = [g / per_row(length, g) for g in objective_etas]
        if not self.objective_moves_gates:
            objective_etas = [torch.zeros_like(g) for g in objective_etas]
        with torch.no_grad():
            value = task.objective(outputs[:rows])
        return Gradients(
            value=value,
            x=torch.nan_to_num(by_objective + by_penalty, nan=0.0),
            etas=[a + b for a, b in zip(objective_etas, penalty_etas, strict=True)],
            penalty=torch.stack([p.detach() for p in penalties]).sum(0),
        )

    def _scaled(self, outputs: Tensor) -> Tensor:
        if self.output_scale != "logits":
            return outputs
        length = row_norm(outputs.detach()).clamp_min(_TINIEST_NORMAL)
        return outputs / per_row(length, outputs)

    def _norms(self, state: AdrGdState) -> list[Tensor]:
        if not self.normalize_by_normals:
            return [torch.ones_like(eta) for eta in state.etas]
        norms = state.normals.norms()
        if self.own_gate_in_normal:
            gates = [surrogate.sigmoid(eta, self.sharpness) for eta in state.etas]
            norms = [norm * gate for norm, gate in zip(norms, gates, strict=True)]
        return [norm.clamp_min(self.normal_floor) for norm in norms]

    def _with_fresh_normals(self, task: Task, state: AdrGdState, t: int) -> AdrGdState:
        exact = normals.resolve(self.normals, state.x[0].numel()) == "exact"
        every = self.normals_every or (1 if exact else 25)
        if not self.normalize_by_normals or t == 0 or t % every:
            return state
        estimate = self._estimate(task, state.sites, state.x, state.etas, state.affine, t)
        memory = 1 if exact else 4
        return replace(state, normals=state.normals.update(estimate, memory))

    def _estimate(
        self, task: Task, sites: Sites, x: Tensor, etas: Sequence[Tensor], affine: bool, t: int
    ) -> list[Tensor]:
        gates = [surrogate.sigmoid(eta, self.sharpness) for eta in etas]
        if normals.resolve(self.normals, x[0].numel()) == "exact":
            task.passes.probe += x[0].numel()
            return normals.exact(sites, x, gates, affine)
        task.passes.probe += self.probes
        return normals.probed(sites, x, gates, task.random.fold(1, t), self.probes, affine)

    def _normalized(self, gradient: Tensor) -> Tensor:
        length = row_norm(gradient)
        floor = 1.0 if self.normalize_gradients == "above-one" else torch.finfo(length.dtype).tiny
        return gradient / per_row(length.clamp_min(floor), gradient)

    def _noise_due(self, state: AdrGdState, gradients: Gradients, now: int) -> list[Tensor]:
        return [
            (now - last >= self.noise_period)
            & (row_norm(gradient) <= self.gate_tolerance)
            & self.perturb
            for last, gradient in zip(state.last_noise, gradients.etas, strict=True)
        ]

    def _moved_gates(
        self, task: Task, state: AdrGdState, gradients: Gradients, noisy: list[Tensor], now: int
    ) -> list[Tensor]:
        directions = [self._normalized(gradient) for gradient in gradients.etas]
        if now > self.noise_period and bool(torch.stack(noisy).any()):
            for i, due in enumerate(noisy):
                rows = due.nonzero().squeeze(1)
                streams = Streams(task.random.keys[rows]).fold(2, now, i)
                noise = streams.normal(directions[i].shape[1:], directions[i].dtype)
                directions[i][rows] += self.noise_scale * noise
        low, high = self.gate_bounds
        pairs = zip(state.etas, directions, strict=True)
        return [(eta - self.gate_step * move).clamp_(low, high) for eta, move in pairs]

    def _moved_weight(self, state: AdrGdState, penalty: Tensor) -> tuple[Tensor, Tensor]:
        gradient = penalty + state.beta_gradient if self.accumulate_weight_gradient else penalty
        small = gradient <= self.weight_tolerance
        move = torch.where(small, -self.weight_decay, self.weight_step * gradient)
        return (state.beta + move).clamp(*self.weight_bounds), gradient
