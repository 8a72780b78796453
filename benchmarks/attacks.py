"""The attacks of the benchmarks: each judged by misclassification, at a number of gradients."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import torch
from counted import Counted
from outcome import Attack, Outcome, Target, untouched
from peer_attacks import PEERS

import facetwalk as fw
from facetwalk.objectives import CrossEntropy, Guided, Margin, TargetedDLR
from facetwalk.solvers import AdrGd, Apgd, Auto, Method, Sign

RUN = 100
"""Steps of one restart."""
SOLVED = 1e-6
"""A margin that counts as misclassified, in float32."""

_PARAMETERS_FOR: dict[tuple[int, ...], str] = {(3, 32, 32): "cifar10", (3, 224, 224): "imagenet"}
"""ADR-GD's, by the shape of images; those for MNIST serve all others."""


def run(
    target: Target,
    objective: fw.objectives.Objective,
    solver: Method | Auto,
    starts: int,
    seed: int,
) -> Outcome:
    """One call of `maximize`."""
    result = fw.maximize(
        fw.Problem(target.model, objective, target.space),
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
    """ADR-GD with the appendix's parameters for such images; two gradients a step. The best of all
    its points counts, as for every solver of ours."""

    def attack_all(target: Target, budget: int, seed: int) -> Outcome:
        data = _PARAMETERS_FOR.get(tuple(target.images.shape[1:]), "mnist")
        solver = replace(
            AdrGd.for_experiment(f"{data}-untargeted", preset),
            normals="probed",
            record_only_noise_steps=False,
        )
        return restarts(solver, climbs_cross_entropy=True)(target, budget, seed)

    return attack_all


def ours(target: Target, budget: int, seed: int) -> Outcome:
    """The default: activation descent with recombination."""
    plan = Auto(evaluations=budget)
    return in_turn(target, [lambda part: run(part, Margin(part.labels), plan, 1, seed)])


def autoattack(target: Target, budget: int, seed: int) -> Outcome:
    """AutoAttack's standard version, as `pyautoattack` has it; it sets its own budget."""
    from pyautoattack import AutoAttack

    counted = Counted(target.model)
    began = time.perf_counter()
    norm = f"L{target.norm}"
    attack = AutoAttack(
        counted, norm=norm, eps=target.eps, device=str(target.images.device), seed=seed
    )
    attacked, _ = attack.run_standard_evaluation(
        target.images, target.labels, batch_size=len(target.labels)
    )
    assert target.space.contains(attacked).all(), "AutoAttack left the feasible set"
    outcome = untouched(replace(target, images=attacked))
    spent = counted.take()
    outcome.gradients += spent.backward // len(target.labels)
    outcome.forwards += spent.forward // len(target.labels)
    outcome.seconds = time.perf_counter() - began
    outcome.notes = {"solver": "AutoAttack standard; evaluations are the mean over images"}
    return outcome


ATTACKS: dict[str, Attack] = {
    "Sign, CE": restarts(Sign(steps=RUN), climbs_cross_entropy=True),
    "Sign, margin": restarts(Sign(steps=RUN), climbs_cross_entropy=False),
    "APGD-CE": restarts(Apgd(steps=RUN), climbs_cross_entropy=True),
    "APGD-T": apgd_t,
    "ADR-GD, paper": adr_gd("paper"),
    "ADR-GD, released": adr_gd("released-attack"),
    "AutoAttack": autoattack,
    **PEERS,
    "ours": ours,
}


def attacks_in(norm: str) -> list[str]:
    """Those that know the norm: torchattacks has none in L1."""
    return [name for name in ATTACKS if norm != "1" or not name.startswith("torchattacks")]
