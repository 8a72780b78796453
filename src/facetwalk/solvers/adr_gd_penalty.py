"""ADR-GD's pattern penalty over all sites at once; its derivatives are added where they belong.

A neuron whose gate disagrees with its pre-activation costs `h lean / ||P||` with
`lean = 1/2 - eta` (`eq::constraint_loss`): the derivative on `h` is `lean / ||P||`, and that on
`eta` is `-h / ||P||`. Tensors are `(B, neurons)`; `inverse` is `1 / ||P||`, and `beta` is `(B,)`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor

from facetwalk import surrogate
from facetwalk.sites import Sites


class Penalty(ABC):
    """The penalty `sum_i L_i` at one point, and what beta times it adds to gradients."""

    value: Tensor
    """`(B,)`."""

    @abstractmethod
    def push(self, site: int, gradient: Tensor) -> None:
        """Add the derivative on the pre-activations of one site to `(B, site.neurons)`."""

    @abstractmethod
    def pull(self, gradient: Tensor, share: float = 1.0) -> None:
        """Add a share of the derivative on all gates to `(B, neurons)`."""


class EveryNeuron(Penalty):
    """Each site sums the costs of its neurons."""

    def __init__(
        self, sites: Sites, h: Tensor, lean: Tensor, inverse: Tensor, beta: Tensor
    ) -> None:
        cost = h * lean
        counted = surrogate.masked(inverse, cost)
        self.value = cost.mul_(counted).sum(1)
        self.h, self.weight = h, counted.mul_(beta[:, None])
        self.factors = list(zip(sites.parts(lean), sites.parts(self.weight), strict=True))

    def push(self, site: int, gradient: Tensor) -> None:
        gradient.addcmul_(*self.factors[site])

    def pull(self, gradient: Tensor, share: float = 1.0) -> None:
        gradient.addcmul_(self.h, self.weight, value=-share)


class WorstNeurons(Penalty):
    """Each site counts two neurons: the worst of those wrongly off, and of those wrongly on."""

    def __init__(
        self,
        sites: Sites,
        firsts: Tensor,
        h: Tensor,
        lean: Tensor,
        inverse: Tensor,
        beta: Tensor,
    ) -> None:
        by_input = lean * inverse
        self.at, cost = surrogate.worst(h, by_input, [site.neurons for site in sites])
        self.value = cost.sum((1, 2))
        weight = (cost > 0) * beta[:, None, None]
        self.among_all = (self.at + firsts[:, None]).flatten(1)
        by_input, h, inverse = (
            each.gather(1, self.among_all).view_as(cost) for each in (by_input, h, inverse)
        )
        self.on_inputs = by_input * weight
        self.on_gates = (h * inverse * weight).flatten(1)

    def push(self, site: int, gradient: Tensor) -> None:
        gradient.scatter_add_(1, self.at[:, :, site], self.on_inputs[:, :, site])

    def pull(self, gradient: Tensor, share: float = 1.0) -> None:
        gradient.scatter_add_(1, self.among_all, self.on_gates * -share)
