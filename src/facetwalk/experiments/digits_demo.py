"""The demo: attacks on the shipped digits network, all with the same number of gradients."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from facetwalk.maximize import Problem, maximize
from facetwalk.objectives import CrossEntropy, Margin
from facetwalk.solvers import AdrGd, Apgd, Fgsm, Sign, Solver
from facetwalk.spaces import LinfBall
from facetwalk.types import InputError
from facetwalk.zoo import digits, digits_net

EPS = 0.2
"""L-infinity radius of the attacks; pixels lie in [0, 1]."""

RESTARTS = 5

_PRESETS = ("paper", "released-attack")

_EVEN_SPLIT = RESTARTS * AdrGd.gradients_per_step


@dataclass(frozen=True)
class Method:
    """A solver, and how often it starts; more than one start is random throughout."""

    name: str
    solver: Solver
    starts: int = 1


@dataclass(frozen=True)
class Attack:
    """What a method did to each image; tensors have a row an image."""

    method: Method
    x: Tensor
    logits: Tensor
    """Of a fresh forward pass at `x`."""
    labels: Tensor
    gradients: Tensor
    """Backward passes of each image."""
    probes: Tensor
    """Forward-mode passes of each image."""
    seconds: float

    @property
    def fooled(self) -> Tensor:
        """Whether each image is misclassified."""
        return self.margin > 0

    @property
    def margin(self) -> Tensor:
        return Margin(self.labels)(self.logits)

    @property
    def cross_entropy(self) -> Tensor:
        return CrossEntropy(self.labels)(self.logits)

    @property
    def strength(self) -> tuple[int, float]:
        """Orders attacks: by images fooled, then by mean cross-entropy."""
        return int(self.fooled.sum()), self.cross_entropy.mean().item()


@dataclass(frozen=True)
class DemoResult:
    """All attacks on the same images."""

    images: Tensor
    labels: Tensor
    evaluations: int
    seed: int
    attacks: tuple[Attack, ...]

    @property
    def strongest(self) -> Attack:
        return max(self.attacks, key=lambda attack: attack.strength)

    @property
    def verdict(self) -> str:
        """One sentence: the best form of ADR-GD against the best other method."""
        ours = [a for a in self.attacks if isinstance(a.method.solver, AdrGd)]
        others = [a for a in self.attacks if not isinstance(a.method.solver, AdrGd)]
        best, rival = (max(group, key=lambda a: a.strength) for group in (ours, others))
        (fooled, _), (rival_fooled, _) = best.strength, rival.strength
        lead = fooled - rival_fooled
        outcome = "wins by" if lead > 0 else "loses by" if lead < 0 else "ties at"
        count = abs(lead) or fooled
        return (
            f"With {self.evaluations} gradients an image, {best.method.name} fools {fooled} of "
            f"{len(self.images)} images and {rival.method.name} {rival_fooled}: "
            f"ADR-GD {outcome} {count} {'image' if count == 1 else 'images'}."
        )


def methods(evaluations: int) -> tuple[Method, ...]:
    """The methods, each with so many gradients an image (but FGSM, which takes one).

    ADR-GD has the paper's parameters for untargeted attacks on MNIST. The authors' code records
    only some of its points; here every method keeps the best of all its points.
    """
    if evaluations < 1 or evaluations % _EVEN_SPLIT:
        raise InputError(
            f"evaluations must be a positive multiple of {_EVEN_SPLIT}, so that {RESTARTS} starts "
            f"and steps of {AdrGd.gradients_per_step} gradients come out even; it is {evaluations}"
        )
    each = evaluations // RESTARTS
    return (
        Method("FGSM", Fgsm()),
        Method("Sign", Sign(steps=evaluations)),
        Method(f"Sign ({RESTARTS} starts)", Sign(steps=each), RESTARTS),
        Method("APGD", Apgd(steps=evaluations)),
        Method(f"APGD ({RESTARTS} starts)", Apgd(steps=each), RESTARTS),
        *(Method(f"ADR-GD ({preset})", _adr_gd(preset, evaluations)) for preset in _PRESETS),
    )


def _adr_gd(preset: str, evaluations: int) -> AdrGd:
    return replace(
        AdrGd.for_experiment("mnist-untargeted", preset),
        steps=evaluations // AdrGd.gradients_per_step,
        record_only_noise_steps=False,
        normals="probed",
    )


def run(
    images: int = 200, evaluations: int = 300, seed: int = 0, progress: bool = False
) -> DemoResult:
    """Attack the first `images` test images that the network classifies correctly."""
    chosen = methods(evaluations)
    net = digits_net()
    x, labels = _correct_images(images)
    problem = Problem(net, CrossEntropy(labels), LinfBall(x, EPS, bounds=(0, 1)))
    maximize(problem)  # so that no method's time holds what torch does once
    attacks = []
    for method in chosen:
        result = maximize(
            problem,
            solver=method.solver,
            starts=method.starts,
            x0="sample" if method.starts > 1 else "center",
            seed=seed,
            progress=progress,
        )
        with torch.no_grad():
            logits = net(result.x)
        passes = result.evaluations
        attacks.append(
            Attack(method, result.x, logits, labels, passes.backward, passes.probe, result.seconds)
        )
    return DemoResult(x, labels, evaluations, seed, tuple(attacks))


def _correct_images(count: int) -> tuple[Tensor, Tensor]:
    images, labels = digits("test")
    with torch.no_grad():
        correct = (digits_net()(images).argmax(1) == labels).nonzero().squeeze(1)
    if not 1 <= count <= len(correct):
        raise InputError(
            f"images must be from 1 to {len(correct)}, the test images that the network "
            f"classifies correctly; it is {count}"
        )
    rows = correct[:count]
    return images[rows], labels[rows]
