"""The ideas that `tried.py` measures, as solvers of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import torch
from scipy.optimize import linprog
from torch import Tensor

from facetwalk import normals
from facetwalk.batching import laid_out_like, per_row
from facetwalk.objectives import Guided
from facetwalk.objectives.classes import without
from facetwalk.objectives.mixed import MixedLosses
from facetwalk.sites import Sites, pattern_of
from facetwalk.solvers import ActivationDescent, Recombination, Round, Solver, Task
from facetwalk.solvers.activation_descent import LeakingPoint
from facetwalk.solvers.recombination import Memory
from facetwalk.solvers.scheduled import Number
from facetwalk.spaces import Space

_DRAWING = 21
"""A stream of random numbers."""
_ROWS = 2048
"""Of one pass that measures normals."""


@dataclass(frozen=True)
class Look:
    """What one pass forward and back tells of the neurons at `x`, each `(B, neurons)`."""

    sites: Sites
    x: Tensor
    seen: Sequence[Tensor]
    """Pre-activations at each site, with their graph."""
    loss: Tensor
    slope: Tensor
    h: Tensor
    gain: Tensor
    """How fast the loss rises with what each neuron passes on."""
    norm: Tensor
    """Those of the normals, in units of the space's `scale`."""

    @classmethod
    def at(cls, task: Task, x: Tensor) -> Self:
        sites, _ = task.sites(x)
        seen: list[Tensor] = []
        passed: list[Tensor] = []

        def hinge(_: int, h: Tensor) -> Tensor:
            seen.append(h)
            passed.append(torch.relu(h))
            return passed[-1]

        leaf = x.detach().requires_grad_()
        with torch.enable_grad():
            loss = task.guide(sites.run(leaf, hinge))
            slope, *gains = torch.autograd.grad(loss.sum(), [leaf, *passed], retain_graph=True)
        task.passes.forward += 1
        task.passes.backward += 1
        norms = ActivationDescent().init(task, x).norms
        h = [each.detach() for each in seen]
        joined = (sites.join(parts) for parts in (h, gains, norms))
        return cls(sites, leaf, seen, loss.detach(), slope, *joined)

    def normal(self, task: Task, weight: Tensor) -> Tensor:
        """The sum of the neurons' normals with these weights, `(B, *shape)`: one pass back."""
        task.passes.backward += 1
        with torch.enable_grad():
            pairs = zip(self.seen, self.sites.split(weight), strict=True)
            total = sum(((h * share).sum() for h, share in pairs), torch.zeros(()))
            return torch.autograd.grad(total, self.x, retain_graph=True)[0]


@dataclass
class PointBetween(LeakingPoint):
    earlier: Tensor
    """The last step's gradient."""


@dataclass(frozen=True, kw_only=True)
class Between(ActivationDescent):
    """Where two gradients after one another point apart, as on the two sides of a ridge, a step
    follows their shortest combination."""

    def init(self, task: Task, x: Tensor) -> PointBetween:
        return _between(super().init(task, x), torch.zeros_like(x))

    def again(self, task: Task, x: Tensor, before: Round) -> PointBetween:
        return _between(super().again(task, x, before), torch.zeros_like(x))

    def move(self, task: Task, state: Any, *numbers: Number) -> tuple[PointBetween, Tensor]:
        size, momentum, *widths = numbers
        if widths:
            point, value = super().move(task, state, *numbers)
            return _between(point, torch.zeros_like(state.x)), value
        value, _, gradient = task.evaluate(state.x)
        inside = task.space.project(state.x + 1e-3 * task.space.ascent(gradient)) != state.x
        one, other = gradient * inside, state.earlier * inside
        apart = (one * other).flatten(1).sum(1) < 0
        gap = one - other
        share = -(other * gap).flatten(1).sum(1) / gap.flatten(1).square().sum(1).clamp_min(1e-30)
        shortest = other + per_row(share.clamp(0, 1), gap) * gap
        way = torch.where(per_row(apart, gap), shortest, gradient)
        point = self.follow(task, state, way, size, momentum)
        return PointBetween(point.x, point.momentum, state.norms, gradient), value


def _between(point: LeakingPoint, earlier: Tensor) -> PointBetween:
    return PointBetween(point.x, point.momentum, point.norms, earlier)


@dataclass
class Trusted:
    x: Tensor
    reach: Tensor
    """How far the next program may go, in radii."""


@dataclass(frozen=True, kw_only=True)
class LinearPrograms(Solver):
    """Each step goes to the maximum of a linear program: the loss of this polytope, less what is
    lost beyond the hyperplanes of the nearest neurons at which it bends down."""

    near: int = 14
    """Neurons of a program; each costs a pass back."""
    reach: float = 0.1
    """How far the first program may go, in radii."""
    shares: tuple[float, ...] = (1.0, 0.3, 0.1)
    """Of the way to its maximum, the best of which is taken; each is charged as a gradient."""

    @property
    def gradients_per_step(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return 1 + self.near + len(self.shares)

    def init(self, task: Task, x: Tensor) -> Trusted:
        return Trusted(x, x.new_full((len(x),), self.reach))

    def step(self, task: Task, state: Any, t: int) -> tuple[Trusted, Tensor]:
        x, look = state.x, Look.at(task, state.x)
        distance = torch.where(look.gain < 0, look.h.abs() / look.norm, torch.inf)
        near = distance.topk(self.near, dim=1, largest=False).indices
        nothing = torch.zeros_like(look.h)
        bends = [look.normal(task, nothing.scatter(1, each, 1.0)) for each in near.split(1, 1)]
        far = per_row(state.reach, x) * task.space.radius
        low, high = task.space.project(x - far) - x, task.space.project(x + far) - x
        parts = [part.flatten(1) for part in (look.slope, low, high)]
        parts += [torch.stack(bends, 1).flatten(2), look.h.gather(1, near)]
        parts.append(look.gain.gather(1, near))
        rows = zip(*(part.double().numpy() for part in parts), strict=True)
        way = torch.tensor(np.stack([_program(*row) for row in rows]), dtype=x.dtype)
        way = way.reshape(x.shape)
        best, best_x, reach = look.loss, x, 0.05 * state.reach
        for share in self.shares:
            there = task.space.project(x + share * way)
            value = task.value(there)
            task.passes.backward += 1
            reach = torch.where(value > best, 2 * share * state.reach, reach)
            best_x = torch.where(per_row(value > best, x), there, best_x)
            best = torch.maximum(value, best)
        return Trusted(best_x, reach), look.loss


def _program(
    slope: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    normal: np.ndarray,
    h: np.ndarray,
    gain: np.ndarray,
) -> np.ndarray:
    """The step between `low` and `high` that gains the most: `slope`, plus the (negative) `gain`
    of each neuron times how far it gets to the other side of its hyperplane."""
    size = np.abs(normal).sum(1).clip(1e-30)
    side = -np.sign(h) / size
    rows = np.hstack([side[:, None] * normal, -np.eye(len(h))])
    cost = -np.concatenate([slope, gain * size])
    bounds = [*zip(low.clip(max=0), high.clip(min=0), strict=True), *[(0, None)] * len(h)]
    found = linprog(cost / np.abs(cost).max().clip(1e-30), rows, -side * h, bounds=bounds)
    return np.zeros_like(slope) if found.x is None else found.x[: len(slope)]


@dataclass(frozen=True, kw_only=True)
class Behind(Recombination):
    """Children begin behind the hyperplanes of the dead neurons that promise most for their
    distance, in the place of coordinates that are drawn anew."""

    switched: int = 8
    beyond: float = 1.5
    """How far a child is moved, as a multiple of the distance to each hyperplane."""

    def begin(self, task: Task, rows: Any, memory: Any, number: int) -> tuple[Task, Tensor]:
        task, x = super().begin(task, rows, memory, number)
        if self._is_last(number) or number % self.generations == 0:
            return task, x
        look = Look.at(task, x)
        promise = look.gain * look.norm.square() / -look.h
        promise = torch.where((look.h < 0) & (look.gain > 0), promise, 0.0)
        best = promise.topk(self.switched, 1)
        chosen = torch.zeros_like(look.h).scatter(1, best.indices, (best.values > 0).to(x.dtype))
        way = look.normal(task, chosen * -look.h / look.norm.square()) * task.space.scale.square()
        return task, task.space.project(x + self.beyond * way)


@dataclass(frozen=True, eq=False)
class Paced(Space):
    """A set in which each row has steps of its own."""

    inner: Space
    pace: Tensor

    shape = property(lambda self: self.inner.shape)
    center = property(lambda self: self.inner.center)
    radius = property(lambda self: self.inner.radius)
    scale = property(lambda self: self.inner.scale)

    def project(self, x: Tensor) -> Tensor:
        return self.inner.project(x)

    def ascent(self, gradient: Tensor) -> Tensor:
        return per_row(self.pace, gradient) * self.inner.ascent(gradient)


@dataclass(frozen=True)
class Tally(Memory):
    won: Tensor
    """How many members of each kind became elites, `(F, kinds)`."""
    tried: Tensor

    def of(self, family: Tensor) -> Tally:
        at = torch.searchsorted(self.family, family)
        known = super().of(family)
        return Tally(known.family, known.elites, known.champions, self.won[at], self.tried[at])


@dataclass(frozen=True, kw_only=True)
class Tallied(Recombination):
    """A bandit: members draw what they climb (cross-entropy, margin, a single class) and how long
    their steps are, the more often what has given elites to this problem."""

    paces: tuple[float, ...] = (0.5, 1.0, 2.0)
    eagerness: float = 2.0
    drawn: dict[str, Tensor] = field(default_factory=dict, compare=False)
    """Families and the kinds of their members in the round at work."""

    def begin(self, task: Task, rows: Any, memory: Any, number: int) -> tuple[Task, Tensor]:
        task, x = super().begin(task, rows, memory, number)
        self.drawn.clear()
        if self._is_last(number):
            return task, x
        family, labels = self._families(rows), task.objective.labels.expand(len(x))
        usual = self._usual(task, x, labels)
        if memory is not None:
            known = memory.of(family)
            mean = known.won.sum(1, True) / known.tried.sum(1, True).clamp_min(1)
            usual = usual * ((1 + known.won) / (1 + known.tried * mean)) ** self.eagerness
        lots = task.random.fold(_DRAWING, number).uniform((2,)).unflatten(0, (-1, self.population))
        even = torch.arange(self.population) + lots[:, :1, 0]
        kinds = usual.shape[1] - len(self.paces)
        loss = _drawn(usual[:, :kinds], even / self.population)
        pace = _drawn(usual[:, kinds:], lots[..., 1])
        if number % self.generations == 0:  # from random points all steps are long
            pace = torch.full_like(pace, self.paces.index(1.0))
        chosen = usual.new_zeros(*loss.shape, usual.shape[1])
        chosen.scatter_(2, torch.stack([loss, kinds + pace], 2), 1.0)
        self.drawn.update(family=family, chosen=chosen)
        loss, pace = loss.flatten(), pace.flatten()
        guide = MixedLosses(labels, targets=(loss - 2).clamp_min(0), kind=loss.clamp_max(2))
        paced = Paced(task.space, torch.tensor(self.paces)[pace])
        return replace(task, objective=Guided(task.objective, guide), space=paced), x

    def _usual(self, task: Task, x: Tensor, labels: Tensor) -> Tensor:
        """How often each kind is drawn at first: single classes by likelihood, but for the second
        likeliest of all, towards which the margin climbs."""
        task.passes.forward += 1
        outputs = task.leaders().outputs(x[:: self.population])
        likely = without(outputs, labels[:: self.population]).argsort(dim=1, descending=True)
        rank = likely.argsort(dim=1).to(x.dtype)
        single = 0.6**rank * (rank > 0) * (rank < outputs.shape[1] - 1)
        single = single / single.sum(1, keepdim=True).clamp_min(1e-30) / 2
        both, pace = x.new_tensor([0.25, 0.25]), x.new_tensor([0.25, 0.5, 0.25])
        count = len(outputs)
        return torch.cat([both.expand(count, 2), single, pace.expand(count, 3)], 1)

    def learn(self, memory: Any, rows: Any, number: int) -> Tally:
        new = super().learn(memory, rows, number)
        if not self.drawn:
            nothing = new.elites.value[:, :0]
            return Tally(new.family, new.elites, new.champions, nothing, nothing)
        at = torch.searchsorted(self.drawn["family"], new.family)
        chosen = self.drawn["chosen"][at]
        value = rows.best.unflatten(0, (-1, self.population))
        best = new.elites.value[:, : self.population]
        first = number % self.generations == 0
        bar = value.median(1, keepdim=True).values if first else best[:, -1:]
        won, tried = (chosen * (value >= bar)[..., None]).sum(1), chosen.sum(1)
        if memory is not None:
            known = memory.of(new.family)
            won, tried = won + known.won, tried + known.tried
        return Tally(new.family, new.elites, new.champions, won, tried)


def _drawn(share: Tensor, lot: Tensor) -> Tensor:
    """What each lot in (0, 1) draws, `(F, members)`, of things in proportion to `share`."""
    upto = share.cumsum(1) / share.sum(1, keepdim=True)
    return torch.searchsorted(upto, lot.contiguous()).clamp_max(share.shape[1] - 1)


@dataclass(frozen=True, kw_only=True)
class Reaching(ActivationDescent):
    """Activation descent whose kernel is as wide for each neuron as a share of how far the set can
    move its pre-activation: `radius * ||P||_1`, measured exactly and not charged."""

    def _norms(self, task: Task, x: Tensor, t: int) -> list[Tensor]:
        usual = super()._norms(task, x, t)
        sites, affine = task.sites(x)
        leaders, x = task.leaders(), x[:: task.mates]
        sites = sites.on(leaders.model)
        gates = pattern_of(sites, sites.pre_activations(x)[1]).gates(x.dtype)
        basis = torch.eye(x[0].numel()).reshape(-1, 1, *x.shape[1:]) * leaders.space.radius
        reached = [torch.zeros_like(gate) for gate in gates]
        for part in basis.split(max(1, _ROWS // len(x))):
            every = part.expand(len(part), *x.shape).contiguous()
            moved = normals.moves(sites, x, gates, every, affine)
            reached = [sum_ + way.abs().sum(0) for sum_, way in zip(reached, moved, strict=True)]
        share = [each.clamp_min(1e-30).repeat_interleave(task.mates, 0) for each in reached]
        return [laid_out_like(norm, each) for norm, each in zip(usual, share, strict=True)]
