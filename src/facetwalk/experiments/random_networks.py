"""The paper's random networks: what is maximised on them, and what a run of a solver finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor, nn

from facetwalk.digests import digest
from facetwalk.experiments.experiment import Record
from facetwalk.maximize import maximize
from facetwalk.objectives import Output
from facetwalk.problem import Problem
from facetwalk.solvers import AdrGd, Auto, Gd, Method
from facetwalk.spaces import Box
from facetwalk.types import InputError
from facetwalk.zoo import MODEL_A, MODEL_B, MODEL_C, StackedNetworks, random_network

SIZES = {"A": MODEL_A, "B": MODEL_B, "C": MODEL_C}
"""The layers of the paper's models, table 1 (b)."""
_APART = 1_000_003
"""The s-th seed of network b draws the random numbers of `s * _APART + b`."""
_QUICK_MODELS, _QUICK_NETWORKS, _QUICK_SEEDS = ("A",), 8, 2


@dataclass(frozen=True)
class Request:
    """What is asked for of an experiment on random networks.

    >>> Request(models=["D"])
    Traceback (most recent call last):
    facetwalk.types.InputError: there is no model 'D': choose of A, B, C
    """

    models: Sequence[str] = tuple(SIZES)
    networks: int = 64
    """Of each model."""
    seeds: int = 3
    device: str = "cpu"
    quick: bool = False
    """Model A alone, at most 8 networks and 2 seeds."""

    def __post_init__(self) -> None:
        unknown = [model for model in self.models if model not in SIZES]
        if unknown:
            raise InputError(f"there is no model {unknown[0]!r}: choose of {', '.join(SIZES)}")
        for name in ("networks", "seeds"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1; it is {getattr(self, name)}")

    def reduced(self) -> Self:
        """What is done: less than is asked for, in the quick form.

        >>> Request(quick=True).reduced().models
        ('A',)
        """
        if not self.quick:
            return self
        networks, seeds = min(self.networks, _QUICK_NETWORKS), min(self.seeds, _QUICK_SEEDS)
        return replace(self, models=_QUICK_MODELS, networks=networks, seeds=seeds)

    @property
    def settings(self) -> dict[str, Any]:
        """What the records of a folder share; other models, from any device, may be added to it."""
        shared = asdict(self)
        return {name: shared[name] for name in ("networks", "seeds", "quick")}

    @property
    def left_out(self) -> list[str]:
        """A sentence on what is missing, in the quick form."""
        note = "The quick form has Model A alone, few networks and few gradients."
        return [note] if self.quick else []


def random_networks(model: str, count: int) -> list[nn.Sequential]:
    """Networks 0, 1, 2, ... of a model: weights and biases uniform on (-1, 1).

    >>> len(random_networks("A", 3))
    3
    """
    return [random_network(SIZES[model], number) for number in range(count)]


@dataclass(frozen=True)
class Run:
    """What is run: one start from the centre, or several from random points."""

    solver: Method | Auto
    starts: int = 1


def paper_gd(gradients: int) -> Gd:
    """The paper's GD: gradients of unit length, steps of 0.5.

    >>> paper_gd(3000).steps
    3000
    """
    return Gd(steps=gradients, step_size=0.5, normalization="l2", decay="constant")


def adr_gd(model: str, gradients: int, preset: str) -> AdrGd:
    """ADR-GD with the appendix's parameters, table (e), and exact normals at every step.

    >>> adr_gd("A", 3000, "released").steps
    1500
    """
    solver = AdrGd.for_experiment(f"model-{model.lower()}", preset)
    steps = gradients // AdrGd.gradients_per_step
    return replace(solver, steps=steps, normals="exact", normals_every=1)


@dataclass(frozen=True)
class Outputs:
    """The outputs of networks, each to be maximised with several seeds, all side by side."""

    problem: Problem
    """Rows: the seeds of the first network, those of the second, and so on."""
    seeds: int

    @classmethod
    def of(
        cls,
        networks: Sequence[nn.Sequential],
        seeds: int = 1,
        device: str = "cpu",
        low: float = -1.0,
    ) -> Self:
        """Over the box [low, 1]^n.

        >>> Outputs.of(random_networks("A", 2), seeds=3).problem.count
        6
        """
        stack = StackedNetworks(networks).to(device)
        rows = torch.arange(len(networks)).repeat_interleave(seeds)
        box = Box(low, 1, shape=(stack.weights[0].shape[1],))
        return cls(Problem(stack.select(rows), Output(0), box), seeds)

    @property
    def made_from(self) -> str:
        return digest(self.problem.model.parameters())

    def solve(self, run: Run) -> Record:
        """The best values, a list for each seed, and what one network and seed cost on average.

        >>> record = Outputs.of(random_networks("A", 2), seeds=3).solve(Run(paper_gd(10)))
        >>> [len(values) for values in record["values"]], record["gradients"], record["probes"]
        ([2, 2, 2], 10.0, 0.0)
        """
        rows = torch.arange(self.problem.count)
        result = maximize(
            self.problem,
            solver=run.solver,
            starts=run.starts,
            x0="center" if run.starts == 1 else "sample",
            seed=rows % self.seeds * _APART + rows // self.seeds,
        )
        return {
            "values": result.value.view(-1, self.seeds).T.tolist(),
            "gradients": _mean(result.evaluations.backward),
            "probes": _mean(result.evaluations.probe),
            "seconds": round(result.seconds, 2),
            "solver": repr(result.solver),
            "starts": run.starts,
            "device": str(result.value.device),
        }


def half_range(values: Sequence[float]) -> float:
    """Half of what lies between the smallest and the largest.

    >>> half_range([1.0, 2.0, 6.0])
    2.5
    """
    return (max(values) - min(values)) / 2


def written(value: float, spread: float | None = None) -> str:
    """A value with as many digits as say something, and its spread with as many.

    >>> written(43.951), written(37672.04, 11.8)
    ('43.95', '37,672 ± 12')
    """
    digits = 2 if abs(value) < 1000 else 0
    beside = "" if spread is None else f" ± {spread:,.{digits}f}"
    return f"{value:,.{digits}f}{beside}"


def _mean(counts: Tensor) -> float:
    return counts.double().mean().item()
