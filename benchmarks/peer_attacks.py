"""Attacks of other libraries, as they come, with as many restarts as a number of gradients allows.

Restarts see what those before them did not solve. What counts is the point that the library
returns; gradients are counted on the way through the network.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import replace

import torch
from counted import Counted
from outcome import Attack, Outcome, Target, untouched
from torch import Tensor, nn

STEPS = 100
"""Of one restart."""
STEP_SIZES = (1 / 4, 1 / 40)
"""Of PGD, in eps: the ratio of torchattacks' defaults, and Madry et al.'s 2.5 eps over all steps.
Every other restart has the one or the other."""

Once = Callable[[nn.Module, Target, int], Tensor]
"""`(model, target, number of the restart) -> points`."""


def restarted(once: Once) -> Attack:
    """A library's attack, again and again."""

    def attack(target: Target, budget: int, seed: int) -> Outcome:
        began = time.perf_counter()
        counted = Counted(target.model)
        total = untouched(target)
        torch.manual_seed(seed)
        for number in range(max(1, budget // STEPS)):
            left = (~total.solved).nonzero().squeeze(1)
            if not len(left):
                break
            part = target.select(left)
            points = once(counted, part, number)
            assert part.space.contains(points).all(), "a library left the feasible set"
            margin = untouched(replace(part, images=points)).margin
            total.margin[left] = torch.maximum(total.margin[left], margin)
            spent = counted.take()
            total.gradients[left.cpu()] += spent.backward // len(left)
            total.forwards[left.cpu()] += spent.forward // len(left)
        total.seconds = time.perf_counter() - began
        return total

    return attack


def _torchattacks_pgd(model: nn.Module, target: Target, number: int) -> Tensor:
    from torchattacks import PGD, PGDL2

    kind = {"inf": PGD, "2": PGDL2}[target.norm]
    size = STEP_SIZES[number % len(STEP_SIZES)] * target.eps
    return kind(model, eps=target.eps, alpha=size, steps=STEPS)(target.images, target.labels)


def _torchattacks_apgd(model: nn.Module, target: Target, number: int) -> Tensor:
    from torchattacks import APGD

    seed = int(torch.randint(2**31, ()))
    attack = APGD(model, norm=f"L{target.norm}", eps=target.eps, steps=STEPS, seed=seed)
    with torch.random.fork_rng():  # it seeds the global generators
        return attack(target.images, target.labels)


def _foolbox_pgd(model: nn.Module, target: Target, number: int) -> Tensor:
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        from foolbox.attacks import L1PGD, L2PGD, LinfPGD
        from foolbox.models.pytorch import PyTorchModel

    kind = {"inf": LinfPGD, "2": L2PGD, "1": L1PGD}[target.norm]
    size = STEP_SIZES[number % len(STEP_SIZES)]
    wrapped = PyTorchModel(model.eval(), bounds=(0, 1), device=target.images.device)
    attack = kind(rel_stepsize=size, steps=STEPS)
    return attack(wrapped, target.images, target.labels, epsilons=target.eps)[1]


PEERS: dict[str, Attack] = {
    "torchattacks PGD": restarted(_torchattacks_pgd),
    "torchattacks APGD": restarted(_torchattacks_apgd),
    "Foolbox PGD": restarted(_foolbox_pgd),
}
