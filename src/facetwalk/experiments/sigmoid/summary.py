"""Records as means over networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from facetwalk.experiments.experiment import Record
from facetwalk.experiments.random_networks import half_range
from facetwalk.experiments.sigmoid import paper
from facetwalk.experiments.sigmoid.planning import GD, PRESETS


@dataclass(frozen=True)
class Summary:
    """One method on the networks of one model."""

    model: str
    method: str
    alpha: int
    """The sharpness; 0 for GD, which has none."""
    means: Sequence[float]
    """Over networks, one for each seed."""
    networks: int
    gradients: float
    probes: float

    @property
    def mean(self) -> float:
        return float(np.mean(self.means))

    @property
    def spread(self) -> float:
        return half_range(self.means)

    @property
    def quoted(self) -> float | None:
        """What the paper has in this place."""
        if self.method == GD:
            return paper.GD.get(self.model)
        return paper.ADR_GD.get((self.alpha, self.model))


def summarise(records: Sequence[Record]) -> list[Summary]:
    """One of each record: GD first, then ADR-GD by preset and sharpness."""
    found = [
        Summary(
            model=record["model"],
            method=record["method"],
            alpha=record.get("alpha", 0),
            means=np.mean(record["values"], 1).tolist(),
            networks=len(record["values"][0]),
            gradients=record["gradients"],
            probes=record["probes"],
        )
        for record in records
    ]
    order = (GD, *PRESETS.values())
    return sorted(found, key=lambda each: (order.index(each.method), each.alpha))
