"""Records as arrays: values of seeds and networks, and what they are measured against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from facetwalk.experiments.ablation.methods import ORDER
from facetwalk.experiments.experiment import Record
from facetwalk.experiments.random_networks import half_range

PROVEN = "A, proven"
"""What records call the networks whose maximum is known."""
EQUAL, APPENDIX, LONG, CURVE = "equal", "appendix", "long", "curve"
"""Parts of the experiment: all methods with the same gradients; ADR-GD with the appendix's number
of steps; our default with ten times the gradients; what the figure needs beside these."""


@dataclass(frozen=True)
class Summary:
    """One method with so many gradients on one group of networks."""

    model: str
    method: str
    part: str
    budget: int
    values: np.ndarray
    """The best of each seed and network, `(seeds, networks)`."""
    gradients: float
    probes: float

    @property
    def mean(self) -> float:
        return float(self.values.mean())

    @property
    def spread(self) -> float:
        """Half the range of the seeds' means over networks."""
        return half_range(self.values.mean(1).tolist())

    @property
    def error(self) -> float:
        """The standard error of the mean that comes from having drawn these networks; nan for
        one network."""
        of_networks = self.values.mean(0)
        if len(of_networks) == 1:
            return float("nan")
        return float(of_networks.std(ddof=1) / len(of_networks) ** 0.5)

    def shares(self, optima: np.ndarray) -> np.ndarray:
        """The sum of the values over the sum of `optima`, `(networks,)`, for each seed."""
        return self.values.sum(1) / optima.sum()


def summarise(records: Sequence[Record]) -> list[Summary]:
    """One of each record; models as they come, then by gradients, then methods in order."""
    found = [
        Summary(
            model=record["model"],
            method=record["method"],
            part=record["part"],
            budget=record["budget"],
            values=np.array(record["values"]),
            gradients=record["gradients"],
            probes=record["probes"],
        )
        for record in records
    ]
    models = list(dict.fromkeys(each.model for each in found))
    return sorted(
        found, key=lambda each: (models.index(each.model), each.budget, ORDER.index(each.method))
    )


def optima(records: Sequence[Record]) -> dict[str, np.ndarray]:
    """What shares are measured against, `(networks,)` for each model.

    Proven maxima, and for other networks the best value over all methods, gradients and seeds.
    """
    found: dict[str, np.ndarray] = {}
    for record in records:
        best = np.array(record.get("optima") or record["values"])
        best = best if best.ndim == 1 else best.max(0)
        found[record["model"]] = np.maximum(best, found.get(record["model"], best))
    return found
