"""The rows of the ablation as data: what each method runs for so many gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from facetwalk.experiments.random_networks import Run, adr_gd, paper_gd
from facetwalk.solvers import Adagrad, Adam, Apgd, Auto, PerturbedGd, Sign

RESTART = 300
"""Steps of one restart, about."""

GD, PERTURBED_GD = "GD", "Perturbed GD"
PAPER_ADR_GD, ADR_GD = "ADR-GD (paper)", "ADR-GD (released)"
SIGN, APGD, OURS = "Sign, restarts", "APGD, restarts", "ours"
BASELINES = (GD, "Adam", "Adagrad", PERTURBED_GD)
"""The paper's own."""

_PARTS = {
    "M1": "objective_moves_gates",
    "M2": "penalty_moves_input",
    "M3": "normalize_by_normals",
    "M4": "perturb",
}
"""What each of the paper's variants of ADR-GD lacks."""
VARIANTS = tuple(_PARTS)
ADR_GD_FORMS = (PAPER_ADR_GD, ADR_GD, *VARIANTS)
CURVES = (*BASELINES, PAPER_ADR_GD, ADR_GD, SIGN, APGD, OURS)
"""What the figure follows from few gradients to many."""


@dataclass(frozen=True)
class Method:
    """A row of the tables."""

    name: str
    run: Callable[[str, int], Run]
    """From a model and a number of gradients."""


def restarts(gradients: int) -> tuple[int, int]:
    """How many restarts of how many steps.

    >>> restarts(3000), restarts(1000), restarts(100)
    ((10, 300), (3, 333), (1, 100))
    """
    starts = max(1, gradients // RESTART)
    return starts, gradients // starts


def _adam(model: str, gradients: int) -> Run:
    return Run(Adam(steps=gradients, step_size=0.1, decay="constant"))


def _adagrad(model: str, gradients: int) -> Run:
    return Run(Adagrad(steps=gradients, step_size=0.5, decay="constant"))


def _perturbed_gd(model: str, gradients: int) -> Run:
    return Run(PerturbedGd(steps=gradients, step_size=0.5, normalization="l2", decay="constant"))


def _variant(lacks: str) -> Callable[[str, int], Run]:
    """The released ADR-GD without one of its parts."""
    return lambda model, gradients: Run(
        replace(adr_gd(model, gradients, "released"), **{lacks: False})
    )


def _sign(model: str, gradients: int) -> Run:
    starts, steps = restarts(gradients)
    return Run(Sign(steps=steps), starts)


def _apgd(model: str, gradients: int) -> Run:
    starts, steps = restarts(gradients)
    return Run(Apgd(steps=steps), starts)


METHODS = (
    Method(GD, lambda model, gradients: Run(paper_gd(gradients))),
    Method("Adam", _adam),
    Method("Adagrad", _adagrad),
    Method(PERTURBED_GD, _perturbed_gd),
    Method(PAPER_ADR_GD, lambda model, gradients: Run(adr_gd(model, gradients, "paper"))),
    Method(ADR_GD, lambda model, gradients: Run(adr_gd(model, gradients, "released"))),
    *(Method(name, _variant(lacks)) for name, lacks in _PARTS.items()),
    Method(SIGN, _sign),
    Method(APGD, _apgd),
    Method(OURS, lambda model, gradients: Run(Auto(evaluations=gradients))),
)
"""The paper gives no settings of its baselines. GD has the step of ADR-GD; those of the others are
our choice."""

ORDER = tuple(method.name for method in METHODS)
"""In which tables and figures show them."""
