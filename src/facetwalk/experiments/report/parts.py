"""The experiments of the report, in the order in which they run and stand on the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from facetwalk.experiments import (
    ablation,
    adversarial,
    gradients,
    landscape,
    policies,
    rl,
    runtime,
    sigmoid,
    toy,
)
from facetwalk.experiments.experiment import Experiment, Plan
from facetwalk.types import InputError


@dataclass(frozen=True)
class Asked:
    """What is asked of all experiments; each takes what its own `Request` has."""

    data: Path | None = None
    """Folder of images."""
    nets: Path | None = None
    """Folder of networks."""
    device: str = "cpu"
    quick: bool = False
    """Small forms that need no files."""

    def __post_init__(self) -> None:
        if self.quick and (self.data or self.nets):
            raise InputError("the quick form has data and networks of its own: leave others out")


@dataclass(frozen=True)
class Part:
    """An experiment, and how it is planned."""

    experiment: Experiment
    request: type[Any]
    """A dataclass."""
    plan: Callable[[Any, Path], Plan]
    """Of a request and the folder of the results."""

    def ask(self, asked: Asked) -> Any:
        """The request of this experiment.

        >>> PARTS[0].ask(Asked(device="cuda", quick=True))
        Request(quick=True)
        """
        own = {field.name for field in fields(self.request)}
        return self.request(
            **{
                field.name: getattr(asked, field.name)
                for field in fields(asked)
                if field.name in own
            }
        )


def _anywhere(plan: Callable[[Any], Plan]) -> Callable[[Any, Path], Plan]:
    """For plans that do not depend on the folder of the results."""
    return lambda request, out: plan(request)


PARTS = (
    Part(toy.TOY, toy.Request, _anywhere(toy.plan)),
    Part(landscape.LANDSCAPE, landscape.Request, _anywhere(landscape.plan)),
    Part(gradients.GRADIENTS, gradients.Request, _anywhere(gradients.plan)),
    Part(sigmoid.SIGMOID, sigmoid.Request, _anywhere(sigmoid.plan)),
    Part(ablation.ABLATION, ablation.Request, _anywhere(ablation.plan)),
    Part(runtime.RUNTIME, runtime.Request, _anywhere(runtime.plan)),
    Part(adversarial.ADVERSARIAL, adversarial.Request, _anywhere(adversarial.plan)),
    Part(rl.RL, rl.Request, rl.plan),
    Part(policies.POLICIES, policies.Request, _anywhere(policies.plan)),
)
