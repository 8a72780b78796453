"""The attacks of the comparison as data: what each runs, where it starts and what it climbs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from facetwalk.experiments.adversarial.data_sets import DataSet
from facetwalk.experiments.adversarial.goals import Goal
from facetwalk.experiments.adversarial.networks import Network
from facetwalk.objectives import Guided, Objective
from facetwalk.solvers import AdrGd, Apgd, Auto, Fgsm, Method, Sign
from facetwalk.types import InputError

RESTART = 100
"""Steps of one restart."""
PGD_STEP = 2 / 255
"""A step of the paper's PGD. The paper is silent; the released attack on MNIST has this one. The
paper is silent on the start too: a random point, as Madry et al. have it, whom it cites. It lets
PGD run until it converges: here it has as many gradients as ADR-GD."""

AUTOATTACK = "AutoAttack"
ADR_GD = "ADR-GD"
"""How the names of its versions begin."""
PGD, STRONG_PGD, PAPER_ADR_GD = "PGD (paper)", "PGD (strong)", "ADR-GD (paper)"
OURS = "ours"

Climbs = Callable[[Goal], Objective]


@dataclass(frozen=True)
class Case:
    """What decides the settings of an attack."""

    data: DataSet
    network: Network
    targeted: bool
    budget: int
    """Gradient evaluations of each image."""

    @property
    def restarts(self) -> tuple[int, int]:
        """How many restarts of how many steps."""
        return (self.budget // RESTART, RESTART) if self.budget >= RESTART else (1, self.budget)


@dataclass(frozen=True)
class Run:
    """One call of `maximize`."""

    solver: Method | Auto
    climbs: Climbs
    starts: int = 1
    x0: Literal["center", "sample"] = "sample"


@dataclass(frozen=True)
class Attack:
    """A row of the tables."""

    name: str
    run: Callable[[Case], Run]


def loss(goal: Goal) -> Objective:
    """The paper's objective; judged as all are."""
    return Guided(goal.judge, goal.loss)


def margin(goal: Goal) -> Objective:
    return Guided(goal.judge, goal.margin)


def dlr(goal: Goal) -> Objective:
    return Guided(goal.judge, goal.dlr)


def judge(goal: Goal) -> Objective:
    return goal.judge


def paper_pgd(case: Case) -> Sign:
    """Signs of the gradient, all steps of one size."""
    return Sign(steps=case.budget, step_size=PGD_STEP / case.data.eps, decay="constant")


def _strong_pgd(case: Case) -> Run:
    starts, steps = case.restarts
    return Run(Sign(steps=steps, step_size=2.0, decay="linear"), loss, starts)


def _apgd(case: Case) -> Run:
    starts, steps = case.restarts
    return Run(Apgd(steps=steps), dlr, starts)


def adr_gd(case: Case, preset: str) -> AdrGd:
    """The appendix's parameters; the best of all its points counts, as for every attack."""
    kind = "targeted" if case.targeted else "untargeted"
    return replace(
        AdrGd.for_experiment(f"{case.data.parameters}-{kind}", preset),
        steps=case.budget // AdrGd.gradients_per_step,
        sites=case.network.gates,
        normals="probed",
        record_only_noise_steps=False,
    )


ATTACKS = (
    Attack("FGSM", lambda case: Run(Fgsm(), loss, x0="center")),
    Attack(PGD, lambda case: Run(paper_pgd(case), loss)),
    Attack(STRONG_PGD, _strong_pgd),
    Attack("APGD", _apgd),
    Attack(PAPER_ADR_GD, lambda case: Run(adr_gd(case, "paper"), loss)),
    Attack(f"{ADR_GD} (margin)", lambda case: Run(adr_gd(case, "paper"), margin)),
    Attack(f"{ADR_GD} (released)", lambda case: Run(adr_gd(case, "released-attack"), loss)),
    Attack(OURS, lambda case: Run(Auto(evaluations=case.budget), judge)),
)
"""All but AutoAttack, which runs itself. ADR-GD climbs the cross-entropy, as in the paper; the form
that the paper has also climbs the margin, which served it better on MNIST."""

ORDER = (*(attack.name for attack in ATTACKS[:-1]), AUTOATTACK, OURS)
"""In which tables and figures show them."""


def usual_budget(data: DataSet) -> int:
    """The gradients of ADR-GD with the appendix's number of steps.

    >>> from facetwalk.experiments.adversarial.data_sets import DATA_SETS
    >>> [usual_budget(data) for data in DATA_SETS.values()]
    [500, 1000, 1000]
    """
    return AdrGd.for_experiment(f"{data.parameters}-untargeted").evaluations


def check_budget(budget: int) -> None:
    """Refuse a budget that the attacks cannot all spend.

    >>> check_budget(150)
    Traceback (most recent call last):
    facetwalk.types.InputError: the budget must be a multiple of 100, or even and below 100, ...
    """
    if budget < 2 or (budget % RESTART if budget >= RESTART else budget % 2):
        raise InputError(
            f"the budget must be a multiple of {RESTART}, or even and below {RESTART}, so that "
            f"restarts and steps of {AdrGd.gradients_per_step} gradients come out even; it is "
            f"{budget}"
        )
