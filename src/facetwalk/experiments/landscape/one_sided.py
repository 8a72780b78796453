"""Panel (d): points on a neuron's hyperplane, and the gradients on its two sides.

At a point `x` where neuron `j` has the pre-activation 0 and the normal `P_j`, let `g-` be the
gradient with the neuron dead and `g+` that with the neuron alive. Torch gives `g-`. The paper's
section 4: following it is worse where a short step along `g+` gains more, except where `g-` itself
leads to the live side. With steps of one length that is

    g- . P_j <= 0 < g+ . P_j    and    |g+| > |g-|

and such a point is *misled*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from facetwalk.batching import row_norm, unit_rows
from facetwalk.experiments.experiment import Record
from facetwalk.experiments.landscape.networks import LARGE, Extremes, networks, square, written
from facetwalk.sites import Sites, discover, pattern_of, tangents
from facetwalk.streams import Streams

STEP = 0.1
"""Length of the steps that are tried along both gradients."""
_MARGIN = 0.3
"""How far from the edge of the square the point that is drawn lies."""
_OFF = 1e-12
"""How far points are put to the dead side of the hyperplane, so that rounding decides nothing."""


@dataclass(frozen=True)
class FacetPoint:
    """A point on a hyperplane, and what is seen from there; vectors are float64 `(2,)`."""

    x: Tensor
    neuron: int
    """Its number among all neurons."""
    normal: Tensor
    minus: Tensor
    """The gradient with the neuron dead."""
    plus: Tensor
    """The gradient with the neuron alive."""

    @property
    def misled(self) -> bool:
        away, across = self.minus @ self.normal <= 0, self.plus @ self.normal > 0
        return bool(away & across & (self.plus.norm() > self.minus.norm()))


def facet_points(network: nn.Sequential, x: Tensor) -> list[FacetPoint]:
    """For each row of `x`, `(B, 2)`, the nearest point of the nearest hyperplane, unless it is off
    the square.

    >>> net = nn.Sequential(nn.Linear(2, 1), nn.ReLU(), nn.Linear(1, 1)).double().eval()
    >>> for layer in (net[0], net[2]):
    ...     _ = layer.weight.data.fill_(1.0), layer.bias.data.zero_()
    >>> (found,) = facet_points(net, torch.tensor([[0.3, 0.1]], dtype=torch.float64))
    >>> found.x.round(decimals=6).tolist(), found.minus.tolist(), found.plus.tolist()
    ([0.1, -0.1], [0.0, 0.0], [1.0, 1.0])
    """
    sites, rows = discover(network, x), torch.arange(len(x))
    with torch.no_grad():
        _, seen = sites.pre_activations(x)
    h, gates = sites.join(seen), pattern_of(sites, seen).gates(x.dtype)
    units = torch.eye(2, dtype=x.dtype)
    every = [sites.join(tangents(sites, x, gates, unit.expand_as(x))) for unit in units]
    normals = torch.stack(every, 2)
    lengths = row_norm(normals.flatten(0, 1)).view_as(h)
    neuron = torch.where(lengths > 0, h.abs() / lengths, torch.inf).argmin(1)
    normal, length = normals[rows, neuron], lengths[rows, neuron, None]
    on = x - (h[rows, neuron, None] / length + _OFF) * normal / length
    sides = []
    for gate in (0.0, 1.0):
        one_side = sites.join(gates)
        one_side[rows, neuron] = gate
        sides.append(_gradients(sites, on, one_side))
    inside = square().contains(on).tolist()
    return [
        FacetPoint(on[b], int(neuron[b]), normal[b], sides[0][b], sides[1][b])
        for b in rows.tolist()
        if inside[b]
    ]


def _gradients(sites: Sites, x: Tensor, gates: Tensor) -> Tensor:
    """Of the network with these gates, `(B, neurons)`, at `x`, `(B, 2)`."""
    leaf = x.clone().requires_grad_()
    with torch.enable_grad():
        output, _ = sites.gated(leaf, sites.split(gates))
        return torch.autograd.grad(output.sum(), leaf)[0]


def search_hyperplanes(count: int, points: int) -> Record:
    """Random points of hyperplanes; of those that are misled, the one with the most to gain."""
    nets = networks(LARGE, count)
    found: list[tuple[int, FacetPoint, float]] = []
    seen = 0
    for which, network in enumerate(nets):
        numbers = torch.arange(points) + which * points
        x = square().sample(Streams.from_seeds(numbers, torch.ones_like(numbers)))
        on = facet_points(network, x)
        seen += len(on)
        for point in on:
            if point.misled:
                minus, plus = values_after(network, point, STEP)
                found.append((which, point, plus - minus))
    inside = [each for each in found if each[1].x.abs().max() <= 1 - _MARGIN]
    clearest = max(inside or found, key=lambda each: each[2], default=None)
    return {
        "sizes": list(LARGE),
        "networks": count,
        "points": seen,
        "misled": len(found),
        "better_after_a_step": sum(gain > 0 for _, _, gain in found),
        "step": STEP,
        "picture": None if clearest is None else _picture(nets, *clearest[:2]),
    }


def values_after(network: nn.Sequential, point: FacetPoint, step: float) -> tuple[float, float]:
    """The network's values after a step along `g-`, and after one along `g+`."""
    both = unit_rows(torch.stack([point.minus, point.plus]))
    with torch.no_grad():
        minus, plus = network(point.x + step * both)[:, 0].tolist()
    return minus, plus


def _picture(nets: Sequence[nn.Sequential], which: int, point: FacetPoint) -> Record:
    network = nets[which]
    leaf = point.x[None].clone().requires_grad_()
    value = network(leaf)
    autograd = torch.autograd.grad(value.sum(), leaf)[0][0]
    minus, plus = values_after(network, point, STEP)
    return {
        "seed": which,
        "weights": written(network),
        "highest": Extremes.of(network).record(),
        "x": point.x.tolist(),
        "value": value.item(),
        "neuron": point.neuron,
        "minus": point.minus.tolist(),
        "plus": point.plus.tolist(),
        "autograd": autograd.tolist(),
        "after_minus": minus,
        "after_plus": plus,
    }
