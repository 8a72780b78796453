"""The attacks of the benchmarks: each judged by misclassification, at a number of gradients."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from networks import Case
from torch import Tensor, nn

import facetwalk as fw
from facetwalk.objectives import CrossEntropy, Guided, Margin, TargetedDLR
from facetwalk.solvers import AdrGd, Apgd, Auto, Method, Sign

RUN = 100
"""Steps of one restart."""
SOLVED = 1e-6
"""A margin that counts as misclassified, in float32."""


@dataclass(frozen=True)
class Target:
    """Images of one network, and the set in which they may move."""

    model: nn.Module
    images: Tensor
    labels: Tensor
    eps: float

    @classmethod
    def of(cls, case: Case, device: str, images: slice = slice(None)) -> Target:
        """Some images of a case, on a device."""
        pixels, labels = case.images()
        model = case.load().to(device)
        for weight in model.parameters():
            weight.requires_grad_(False)
        return cls(model, pixels[images].to(device), labels[images].to(device), case.eps)

    def select(self, rows: Tensor) -> Target:
        return replace(self, images=self.images[rows], labels=self.labels[rows])


@dataclass
class Outcome:
    """What an attack did to each image."""

    margin: Tensor
    """The highest found, re-evaluated."""
    gradients: Tensor
    """Gradient evaluations spent, int64 `(B,)`."""
    forwards: Tensor
    seconds: float = 0.0
    notes: dict[str, str] = field(default_factory=dict)

    @property
    def solved(self) -> Tensor:
        return self.margin > 0


Attack = Callable[[Target, int, int], Outcome]
"""`(target, gradient evaluations, seed) -> Outcome`."""


def untouched(target: Target) -> Outcome:
    """Before any attack: some images are misclassified as they are."""
    nothing = torch.zeros(len(target.labels), dtype=torch.int64)
    with torch.no_grad():
        margin = Margin(target.labels)(target.model(target.images))
    return Outcome(margin, nothing, nothing.clone())


def run(
    target: Target,
    objective: fw.objectives.Objective,
    solver: Method | Auto,
    starts: int,
    seed: int,
) -> Outcome:
    """One call of `maximize`."""
    space = fw.LinfBall(target.images, target.eps, bounds=(0, 1))
    result = fw.maximize(
        fw.Problem(target.model, objective, space),
        solver=solver,
        starts=starts,
        seed=seed * 1_000_003,
        x0="sample",
        stop_at=SOLVED,
    )
    counts = result.evaluations
    return Outcome(result.value, counts.backward, counts.forward, notes={"solver": repr(solver)})


def in_turn(target: Target, attacks: list[Callable[[Target], Outcome]]) -> Outcome:
    """Each attack on the images that those before it did not solve."""
    began = time.perf_counter()
    total = untouched(target)
    for attack in attacks:
        left = (~total.solved).nonzero().squeeze(1)
        if not len(left):
            break
        outcome = attack(target.select(left))
        total.margin[left] = torch.maximum(total.margin[left], outcome.margin)
        total.gradients[left.cpu()] += outcome.gradients
        total.forwards[left.cpu()] += outcome.forwards
        total.notes |= outcome.notes
    total.seconds = time.perf_counter() - began
    return total


def restarts(solver: Method, climbs_cross_entropy: bool) -> Attack:
    """A solver with as many random starts as the budget allows."""

    def attack_all(target: Target, budget: int, seed: int) -> Outcome:
        starts = max(1, budget // solver.evaluations)

        def attack(part: Target) -> Outcome:
            margin = Margin(part.labels)
            guided = Guided(margin, CrossEntropy(part.labels))
            return run(part, guided if climbs_cross_entropy else margin, solver, starts, seed)

        return in_turn(target, [attack])

    return attack_all


def apgd_t(target: Target, budget: int, seed: int) -> Outcome:
    """Auto-PGD on the targeted DLR loss, towards each of the nine likeliest other classes."""
    classes = 9
    starts = max(1, budget // (classes * RUN))

    def towards(rank: int) -> Callable[[Target], Outcome]:
        def attack(part: Target) -> Outcome:
            with torch.no_grad():
                logits = part.model(part.images)
            others = logits.scatter(1, part.labels[:, None], -torch.inf)
            goal = others.topk(rank + 1, dim=1).indices[:, rank]
            guided = Guided(Margin(part.labels), TargetedDLR(part.labels, goal))
            steps = budget // (classes * starts)
            return run(part, guided, Apgd(steps=steps), starts, seed + 101 * rank)

        return attack

    return in_turn(target, [towards(rank) for rank in range(classes)])


def adr_gd(preset: str) -> Attack:
    """ADR-GD with the appendix's parameters for MNIST; two gradients a step."""
    solver = replace(AdrGd.for_experiment("mnist-untargeted", preset), normals="probed")
    return restarts(solver, climbs_cross_entropy=True)


def ours(target: Target, budget: int, seed: int) -> Outcome:
    """The default: activation descent with recombination."""
    plan = Auto(evaluations=budget)
    return in_turn(target, [lambda part: run(part, Margin(part.labels), plan, 1, seed)])


def autoattack(target: Target, budget: int, seed: int) -> Outcome:
    """AutoAttack's standard version, as `pyautoattack` has it; it sets its own budget."""
    from pyautoattack import AutoAttack

    counted = _Counted(target.model)
    began = time.perf_counter()
    attack = AutoAttack(
        counted, norm="Linf", eps=target.eps, device=str(target.images.device), seed=seed
    )
    attacked, _ = attack.run_standard_evaluation(
        target.images, target.labels, batch_size=len(target.labels)
    )
    outcome = untouched(replace(target, images=attacked))
    outcome.gradients += counted.backward_rows // len(target.labels)
    outcome.forwards += counted.forward_rows // len(target.labels)
    outcome.seconds = time.perf_counter() - began
    outcome.notes = {"solver": "AutoAttack standard; evaluations are the mean over images"}
    return outcome


class _Counted(nn.Module):
    """Counts the rows that pass forward, and back."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.forward_rows = self.backward_rows = 0

    def forward(self, x: Tensor) -> Tensor:
        self.forward_rows += len(x)
        logits = self.model(x)
        if logits.requires_grad:
            logits.register_hook(self._count_backward)
        return logits

    def _count_backward(self, gradient: Tensor) -> None:
        self.backward_rows += len(gradient)


ATTACKS: dict[str, Attack] = {
    "Sign, CE": restarts(Sign(steps=RUN), climbs_cross_entropy=True),
    "Sign, margin": restarts(Sign(steps=RUN), climbs_cross_entropy=False),
    "APGD-CE": restarts(Apgd(steps=RUN), climbs_cross_entropy=True),
    "APGD-T": apgd_t,
    "ADR-GD, paper": adr_gd("paper"),
    "ADR-GD, released": adr_gd("released-attack"),
    "AutoAttack": autoattack,
    "ours": ours,
}
