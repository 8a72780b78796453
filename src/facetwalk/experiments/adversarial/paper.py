"""What the paper says in numbers about adversarial optimisation, and where it says it.

Its figure 3 (a, b) has no numbers; all that it prints are three success rates and a table of times.
"""

from __future__ import annotations

from dataclasses import dataclass

_NATURAL = ("mnist-natural", "mnist_cnn_clean")
_ROBUST = ("mnist-pgd", "mnist_cnn_pgd")

SUCCESS: dict[tuple[str, str], float] = {
    **{(network, "PGD (paper)"): 0.9678 for network in _NATURAL},
    **{(network, "PGD (paper)"): 0.0492 for network in _ROBUST},
    **{(network, "ADR-GD (paper)"): 0.2793 for network in _ROBUST},
}
"""Of untargeted attacks, by network and attack: section 6.1, the paragraph on figure 3. It does not
say which of its robust networks it means, nor whether the attacks are untargeted; the network
trained with PGD, and untargeted attacks, are our reading."""


@dataclass(frozen=True)
class Cost:
    """A row of table 1 (a): seconds of one iteration, and variables."""

    pgd: float
    adr_gd: float
    inputs: int
    variables: int

    @property
    def ratio(self) -> float:
        """What an iteration of ADR-GD costs, in iterations of PGD.

        >>> [round(cost.ratio, 1) for cost in COSTS.values()]
        [17.4, 12.7, 6.3]
        """
        return self.adr_gd / self.pgd


_NOT_THE_PAPERS = ("squeezenet1_1",)
"""Networks on a data set of the paper that it does not have."""

COSTS = {
    "mnist": Cost(6.22e-4, 1.08e-2, 784, 9_180),
    "cifar10": Cost(1.07e-3, 1.36e-2, 3_072, 23_552),
    "imagenet": Cost(6.58e-3, 4.17e-2, 150_528, 351_232),
}
"""By data set; for ImageNet that of Wide ResNet-50-2."""


def cost_of(data: str, network: str) -> Cost | None:
    """What the paper says of a network like this one.

    >>> cost_of("imagenet", "wide_resnet50_2") is COSTS["imagenet"]
    True
    >>> cost_of("imagenet", "squeezenet1_1")
    """
    return None if network in _NOT_THE_PAPERS else COSTS.get(data)
