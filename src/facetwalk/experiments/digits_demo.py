"""The demo: attacks on the shipped digits network, all with the same number of gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from facetwalk import solvers
from facetwalk.maximize import maximize
from facetwalk.objectives import CrossEntropy, Guided, Margin
from facetwalk.problem import Problem, Result
from facetwalk.solvers import AdrGd, Apgd, Auto, Fgsm, Sign, Solver
from facetwalk.spaces import LinfBall
from facetwalk.types import InputError
from facetwalk.zoo import digits, digits_net

EPS = 0.2
"""L-infinity radius of the attacks; pixels lie in [0, 1]."""

RESTARTS = 10

_PRESETS = ("paper", "released-attack")

_EVEN_SPLIT = math.lcm(RESTARTS, AdrGd.gradients_per_step)


@dataclass(frozen=True)
class Method:
    """A solver, and how often it starts; more than one start is random throughout."""

    name: str
    solver: Solver | Auto
    starts: int = 1
    climbs_cross_entropy: bool = False
    """Instead of the margin, by which every method is judged."""

    def objective(self, labels: Tensor) -> Margin | Guided:
        margin = Margin(labels)
        return Guided(margin, CrossEntropy(labels)) if self.climbs_cross_entropy else margin


@dataclass(frozen=True)
class Attack:
    """What a method did to each image; tensors have a row an image."""

    method: Method
    ran: solvers.Method
    """The method's solver; for `Auto`, what it planned."""
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
    def strength(self) -> tuple[int, float]:
        """Orders attacks: by images fooled, then by mean margin."""
        return int(self.fooled.sum()), self.margin.mean().item()


@dataclass(frozen=True)
class DemoResult:
    """All attacks on the same images."""

    images: Tensor
    labels: Tensor
    evaluations: int
    seed: int
    attacks: tuple[Attack, ...]
    """The first is that of our default."""

    @property
    def verdict(self) -> str:
        """One sentence: our default against the best other method."""
        ours, *others = self.attacks
        rival = max(others, key=lambda attack: attack.strength)
        (fooled, margin), (rival_fooled, rival_margin) = ours.strength, rival.strength
        return (
            f"With {self.evaluations} gradients an image, our default fools {fooled} of "
            f"{len(self.images)} images, mean margin {margin:.3f}; the best other method, "
            f"{rival.method.name}, fools {rival_fooled}, mean margin {rival_margin:.3f}."
        )


def methods(evaluations: int) -> tuple[Method, ...]:
    """The methods, our default first, each with so many gradients an image (but FGSM: one).

    All are judged by the margin. FGSM, Sign and APGD climb the cross-entropy, as their authors
    do, and so fool more images than by the margin; for ADR-GD it is the other way round. ADR-GD
    has the paper's parameters for untargeted attacks on MNIST. The authors' code records only
    some of its points; here every method keeps the best of all its points.
    """
    if evaluations < 1 or evaluations % _EVEN_SPLIT:
        raise InputError(
            f"evaluations must be a positive multiple of {_EVEN_SPLIT}, so that {RESTARTS} starts "
            f"and steps of {AdrGd.gradients_per_step} gradients come out even; it is {evaluations}"
        )
    each = evaluations // RESTARTS
    return (
        Method("Auto (our default)", Auto(evaluations=evaluations)),
        Method("FGSM", Fgsm(), climbs_cross_entropy=True),
        Method(f"Sign ({RESTARTS} starts)", Sign(steps=each), RESTARTS, climbs_cross_entropy=True),
        Method(f"APGD ({RESTARTS} starts)", Apgd(steps=each), RESTARTS, climbs_cross_entropy=True),
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
    images: int = 100, evaluations: int = 1000, seed: int = 0, progress: bool = False
) -> DemoResult:
    """Attack the first `images` test images that the network classifies correctly."""
    chosen = methods(evaluations)
    net = digits_net()
    x, labels = _correct_images(images)
    space = LinfBall(x, EPS, bounds=(0, 1))
    for method in methods(_EVEN_SPLIT):
        _attack(method, net, labels, space, seed)  # what torch does once is not to count
    attacks = []
    for method in chosen:
        result = _attack(method, net, labels, space, seed, progress)
        with torch.no_grad():
            logits = net(result.x)
        attacks.append(
            Attack(
                method=method,
                ran=result.solver,
                x=result.x,
                logits=logits,
                labels=labels,
                gradients=result.evaluations.backward,
                probes=result.evaluations.probe,
                seconds=result.seconds,
            )
        )
    return DemoResult(x, labels, evaluations, seed, tuple(attacks))


def _attack(
    method: Method,
    net: nn.Module,
    labels: Tensor,
    space: LinfBall,
    seed: int,
    progress: bool = False,
) -> Result:
    return maximize(
        Problem(net, method.objective(labels), space),
        solver=method.solver,
        starts=method.starts,
        x0="sample" if method.starts > 1 else "center",
        seed=seed,
        progress=progress,
    )


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
