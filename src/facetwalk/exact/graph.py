"""A piecewise-linear network as affine maps between its hinges, each `max(z, 0)`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from facetwalk.exact.copying import device_of, in_float64
from facetwalk.exact.linear_ops import check_affine
from facetwalk.exact.rounding import check_finite
from facetwalk.sites import Sites, discover
from facetwalk.sites.interception import Interception
from facetwalk.types import ModelError

Hinge = Callable[[int, Tensor], Tensor]
"""What a site gives, `(B, width)`, for its number and its pre-activation, `(B, width)`."""

_TOLERANCE = 1e-9
"""By how much rounding may change an affine map, as a share of the sum of all its terms."""


@dataclass(frozen=True)
class Pullback:
    """Linear functions `input @ x + sum_j hidden[j] @ a_j + constant`, one in each of R rows."""

    input: Tensor
    """`(R, inputs)`."""
    hidden: list[Tensor | None]
    """`(R, neurons of the site)` for each site, or None where a site does not come in."""
    constant: Tensor
    """`(R,)`."""

    def __neg__(self) -> Pullback:
        hidden = [None if block is None else -block for block in self.hidden]
        return Pullback(-self.input, hidden, -self.constant)


class _EnoughError(Exception):
    """Ends a run of the network once it has come to the site that is asked for."""


@dataclass(frozen=True)
class Graph:
    """What each hinge and the output are, as affine functions of the input and earlier hinges.

    In float64, on a copy of the model; `widths` are the neurons of each site.
    """

    sites: Sites
    shape: tuple[int, ...]
    outputs: int
    device: torch.device

    @classmethod
    def of(cls, model: nn.Module, shape: tuple[int, ...]) -> Graph:
        """The graph of a network that takes `(B, *shape)`.

        >>> net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).eval()
        >>> graph = Graph.of(net, (3,))
        >>> graph.widths, graph.outputs
        ([4], 2)
        """
        return cls.of_copy(in_float64(model), shape)

    @classmethod
    def of_copy(cls, twin: nn.Module, shape: tuple[int, ...]) -> Graph:
        """The graph of a network that is a copy in float64 already."""
        device = device_of(twin)
        zero = torch.zeros(1, *shape, dtype=torch.float64, device=device)
        sites = _sites_of(twin, zero)
        with torch.no_grad():
            outputs = twin(zero).flatten(1).shape[1]
        graph = cls(sites, shape, outputs, device)
        graph._check()
        return graph

    @property
    def widths(self) -> list[int]:
        return [site.neurons for site in self.sites]

    def __call__(self, x: Tensor) -> Tensor:
        """The network: outputs `(B, outputs)` of inputs `(B, *shape)`."""
        with torch.no_grad():
            return self.sites.model(x.clone()).flatten(1)

    def maps(self, x: Tensor, hinge: Hinge, last: int = -1) -> list[Tensor]:
        """Every pre-activation `(B, width)`, then the output, where the i-th site gives
        `hinge(i, z)` for its pre-activation; up to the site `last`, if that is not -1.
        """
        seen: list[Tensor] = []

        def replace(i: int, z: Tensor) -> Tensor:
            seen.append(z.flatten(1))
            if i == last:
                raise _EnoughError
            return hinge(i, seen[-1]).view(z.shape)

        try:
            output = self.sites.run(x, replace)
        except _EnoughError:
            return seen
        return [*seen, output.flatten(1)]

    def pull_back(self, position: int, rows: Tensor) -> Pullback:
        """`rows`, `(R, width)`, are functions of a site's pre-activation, or of the output where
        `position` is -1; this gives them as functions of the input and of earlier hinges.
        """
        leaves = self._zeros(len(rows))
        with torch.enable_grad():
            target = self.maps(leaves[0], _constant(leaves[1:]), position)[-1]
            if target.grad_fn is None:  # also a view made without gradients, which requires them
                gradients = (None,) * len(leaves)
            else:
                gradients = torch.autograd.grad(target, leaves, rows, allow_unused=True)
        of_input = gradients[0]
        if of_input is None:
            of_input = torch.zeros_like(leaves[0])
        constant = (rows * target.detach()).sum(1)
        return Pullback(of_input.flatten(1), list(gradients[1:]), constant)

    def check_at(self, points: Tensor, outputs: Tensor) -> None:
        """Raise `ModelError` unless at `points`, `(B, *shape)`, the network is what the maps say.

        `outputs`, `(B, outputs)`, is what it gives there by itself.
        """
        seen = self.maps(points, lambda _, z: z.clamp(min=0))[:-1]
        self._compare(points, [z.clamp(min=0) for z in seen], [*seen, outputs])

    def _zeros(self, rows: int) -> list[Tensor]:
        shapes = [self.shape, *((width,) for width in self.widths)]
        return [
            torch.zeros(rows, *shape, dtype=torch.float64, device=self.device, requires_grad=True)
            for shape in shapes
        ]

    def _check(self) -> None:
        with torch.enable_grad():
            leaves = self._zeros(3)
            check_affine(self.maps(leaves[0], _constant(leaves[1:])))
        random = torch.Generator().manual_seed(0)
        x, *hidden = (torch.randn(leaf.shape, generator=random).to(leaf) for leaf in leaves)
        with torch.no_grad():
            self._compare(x, hidden, self.maps(x, _constant(hidden)))

    def _compare(self, x: Tensor, hidden: list[Tensor], seen: list[Tensor]) -> None:
        """Compare what sites and output are where the hinges give `hidden` with what was `seen`,
        `(B, width)` each, by a random function of each in every row.
        """
        random = torch.Generator().manual_seed(0)
        for position, z in zip((*range(len(hidden)), -1), seen, strict=True):
            rows = torch.randn(z.shape, generator=random).to(z)
            pulled = self.pull_back(position, rows)
            terms = [pulled.constant[:, None], pulled.input * x.flatten(1), -rows * z]
            pairs = zip(pulled.hidden, hidden, strict=True)
            terms += [block * given for block, given in pairs if block is not None]
            all_terms = torch.cat(terms, 1)
            check_finite([all_terms])
            limit = _TOLERANCE * all_terms.abs().sum(1)
            if bool((all_terms.sum(1).abs() > limit).any()):
                raise ModelError(
                    "between its ReLUs the network is not affine (it may branch by its input, "
                    "detach a part of it, or mix the rows of a batch), so nothing can be proven "
                    "of it"
                )


def _sites_of(twin: nn.Module, x: Tensor) -> Sites:
    """The sites of a network that takes `x`, `(1, *shape)`; none, if it is affine throughout."""
    seen: list[bool] = []

    def note(_: int, z: Tensor) -> Tensor:
        seen.append(z.requires_grad)
        return torch.relu(z)

    with torch.enable_grad(), Interception(note):
        twin(x.clone().requires_grad_())
    return discover(twin, x) if any(seen) else Sites(twin, (), len(seen))


def _constant(hidden: list[Tensor]) -> Hinge:
    """Sites that give copies of `hidden`, whatever they get: the network may change them."""
    return lambda i, _: hidden[i].clone()
