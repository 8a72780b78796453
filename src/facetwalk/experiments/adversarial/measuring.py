"""One attack on one network: what it found, and the record of it."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from facetwalk.batching import per_row
from facetwalk.experiments.adversarial.attacks import Attack, Case
from facetwalk.experiments.adversarial.victims import Victim
from facetwalk.experiments.experiment import Record
from facetwalk.maximize import maximize
from facetwalk.problem import Problem
from facetwalk.types import NotAffineWarning

_APART = 1_000_003
"""Image b of the s-th seed uses the random numbers of `s * _APART + b`."""


@dataclass(frozen=True)
class Found:
    """The best point of each image, `(N, C, H, W)`, and what it took, `(N,)` each."""

    x: Tensor
    gradients: Tensor
    forwards: Tensor
    probes: Tensor
    seconds: float


def run_attack(victim: Victim, attack: Attack, targeted: bool, budget: int, seed: int) -> Found:
    """Attack every image, also those that are misclassified as they are."""
    run = attack.run(Case(victim.data, victim.network, targeted, budget))
    began = time.perf_counter()
    with warnings.catch_warnings():
        # Pools make hyperplanes local; ADR-GD knows, and measures them where it is.
        warnings.simplefilter("ignore", NotAffineWarning)
        result = maximize(
            Problem(victim.model, run.climbs(victim.goal(targeted)), victim.space),
            solver=run.solver,
            starts=run.starts,
            x0=run.x0,
            seed=seed * _APART,
        )
    spent = result.evaluations
    seconds = time.perf_counter() - began
    return Found(result.x, spent.backward, spent.forward, spent.probe, seconds)


def record_of(victim: Victim, found: Found, targeted: bool) -> Record:
    """Success and the paper's objective by fresh passes. The image itself counts as a point that
    every attack has seen."""
    goal = victim.goal(targeted)
    clean, attacked = victim.logits(victim.images), victim.logits(found.x)
    better = goal.judge(attacked) >= goal.judge(clean)
    logits = torch.where(per_row(better, attacked), attacked, clean)
    return {
        "eps": victim.data.eps,
        "robust": victim.network.robust,
        "images": len(victim.images),
        "reached_before": _mean(goal.margin(clean) > 0),
        "success": _mean(goal.margin(logits) > 0),
        "objective": _mean(goal.loss(logits)),
        "margin": _mean(goal.margin(logits)),
        "gradients": _mean(found.gradients),
        "forwards": _mean(found.forwards),
        "probes": _mean(found.probes),
        "seconds": round(found.seconds, 2),
        "device": str(victim.images.device),
    }


def _mean(values: Tensor) -> float:
    return values.double().mean().item()
