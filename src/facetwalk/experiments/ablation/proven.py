"""Networks of Model A whose maximum over [-1, 1]^10 is proven.

`proven.json` is a copy of `benchmarks/results/proven.json`, which `benchmarks/proven.py` makes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources

from torch import nn

from facetwalk.zoo import MODEL_A, notebook_network, uniform_network

_MAKERS = {
    "Model A": lambda seed: uniform_network(MODEL_A, seed),
    "notebook": notebook_network,
}
"""Networks by what their names begin with; a seed follows."""


@dataclass(frozen=True)
class Optimum:
    """The maximum of one network lies between `value`, taken at `x`, and `bound`."""

    name: str
    value: float
    bound: float
    x: tuple[float, ...]

    def network(self) -> nn.Sequential:
        """Drawn anew, in float64."""
        kind, seed = self.name.rsplit(", ", 1)
        return _MAKERS[kind](int(seed))


def proven_optima() -> list[Optimum]:
    """All that are proven so far.

    >>> proven_optima()[0].name
    'Model A, 0'
    """
    text = resources.files("facetwalk.experiments.ablation").joinpath("proven.json").read_text()
    return [
        Optimum(entry["network"], entry["value"], entry["bound"], tuple(entry["x"]))
        for entry in json.loads(text)["results"]
        if entry["proven"]
    ]
