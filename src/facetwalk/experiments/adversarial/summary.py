"""Records of several seeds as one figure each."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from facetwalk.experiments.adversarial.attacks import ORDER
from facetwalk.experiments.experiment import Record


@dataclass(frozen=True)
class Summary:
    """One attack on one network: means over seeds."""

    model: str
    attack: str
    targeted: bool
    robust: bool
    success: float
    objective: float
    """The paper's J: cross-entropy of the label, or minus that of the target."""
    spread: float
    """Largest success of a seed minus the smallest."""
    reached_before: float
    """Share of images that needed no attack."""
    images: int
    gradients: float
    probes: float
    seeds: int

    @property
    def strength(self) -> tuple[float, float]:
        """Orders attacks: by success, then by objective."""
        return self.success, self.objective


def summarise(records: Sequence[Record]) -> list[Summary]:
    """A summary for each network, kind of goal and attack; networks in the order of records."""
    groups: dict[tuple[str, bool, str], list[Record]] = {}
    for record in records:
        if record["kind"] == "attack":
            key = (record["model"], record["targeted"], record["attack"])
            groups.setdefault(key, []).append(record)
    networks = list(dict.fromkeys(model for model, _, _ in groups))
    order = sorted(groups, key=lambda key: (networks.index(key[0]), key[1], ORDER.index(key[2])))
    return [_summary(groups[key]) for key in order]


def _summary(group: Sequence[Record]) -> Summary:
    def mean(name: str) -> float:
        return statistics.fmean(record[name] for record in group)

    first, rates = group[0], [record["success"] for record in group]
    return Summary(
        model=first["model"],
        attack=first["attack"],
        targeted=first["targeted"],
        robust=first["robust"],
        success=mean("success"),
        objective=mean("objective"),
        spread=max(rates) - min(rates),
        reached_before=mean("reached_before"),
        images=first["images"],
        gradients=mean("gradients"),
        probes=mean("probes"),
        seeds=len(group),
    )


def costs(records: Sequence[Record]) -> list[Record]:
    """The records of what steps cost."""
    return [record for record in records if record["kind"] == "cost"]
