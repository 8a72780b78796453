"""How often the better one-sided gradient is missed: the paper's section 4, measured.

On the hyperplane of a neuron the network has two gradients, with the neuron dead and with it alive,
and torch gives the first. Section 4 says that steps often come near to hyperplanes, and that the
worse gradient is followed where the other one gains more, except where the step of the first turns
the neuron on by itself. At a point `x` with gradient `g`, from which a method steps by `s(g)` and
projects, for a dead neuron `j` with pre-activation `h_j <= 0`, normal `P_j` and downstream slope
`a_j` (what the objective gains by each unit of the neuron's output):

- `j` is *near* if its hyperplane is no farther away than the step is long, `|h_j| <= |s(g)| |P_j|`;
- `d-` is the step that is taken, with `g`; `d+` the one with the gradient of the other side,
  `g + a_j P_j`; both of the same method and size, and projected onto the feasible set;
- with all other neurons as they are, a step `d` gains `g.d + a_j max(h_j + P_j.d, 0)`;
- the better gradient is *missed* at `j` if `d-` does not turn it on, `h_j + P_j.d- <= 0`, while
  `d+` does and gains more.

On the hyperplane itself and with short steps this is the paper's comparison. Other neurons change
too on such a step. So of the neurons missed at a point the one with the largest gain is tried:
the better gradient *holds* if the objective itself is higher at `x + d+` than at `x + d-`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from facetwalk.batching import row_norm
from facetwalk.gradients import gradient_of
from facetwalk.normals import moves
from facetwalk.objectives import as_objective
from facetwalk.problem import Problem
from facetwalk.sites import Sites, discover, pattern_of
from facetwalk.surrogate import gate_gradient


@dataclass(frozen=True)
class Sides:
    """What is seen from one point."""

    near: int
    """Dead neurons that are near."""
    missed: int
    """Those among them at which the better gradient is missed."""
    holds: bool | None
    """Whether the best of these is better for the whole network; None where there is none."""


def look_at_sides(problem: Problem, x: Tensor, step: Callable[[Tensor], Tensor]) -> Sides:
    """Compare the one-sided gradients of all near dead neurons at a point of a single problem.

    Args:
        problem: a single one.
        x: `(1, *shape)`.
        step: gradients `(K, *shape)` to what a step adds to `x`, before projection.

    >>> from torch import nn
    >>> import facetwalk as fw
    >>> net = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1)).double().eval()
    >>> for layer, rows in ((net[0], [[-1.0], [1.0]]), (net[2], [[1.0, 3.0]])):
    ...     _ = layer.weight.data.copy_(torch.tensor(rows)), layer.bias.data.zero_()
    >>> valley = fw.Problem(net, fw.objectives.Output(0), fw.Box(-1, 1, shape=(1,)))
    >>> x = torch.tensor([[-0.1]], dtype=torch.float64)  # slope -1, and 3 beyond 0
    >>> look_at_sides(valley, x, lambda gradient: 0.5 * gradient.sign())
    Sides(near=1, missed=1, holds=True)
    """
    objective = as_objective(problem.objective)
    sites = discover(problem.model, x)
    with torch.no_grad():
        _, seen = sites.pre_activations(x)
    gates = pattern_of(sites, seen).gates(x.dtype)
    h = sites.join(seen)[0]
    slopes = sites.join(gate_gradient(sites, x, gates, objective))[0]
    normals = all_normals(sites, x, gates)
    _, _, gradient = gradient_of(problem.model, objective, x)
    reach = row_norm(step(gradient))

    lengths = normals.norm(dim=1)
    near = (h <= 0) & (-h <= reach * lengths) & (lengths > 0)
    h, slopes, normals, g = h[near], slopes[near], normals[near], gradient.flatten(1)
    alive = (g + slopes[:, None] * normals).view(-1, *x.shape[1:])

    def moved(gradients: Tensor) -> Tensor:
        return (problem.space.project(x + step(gradients)) - x).flatten(1)

    minus, plus = moved(gradient), moved(alive)
    turned_on = h + (normals * plus).sum(1)
    gain = (g * plus).sum(1) + slopes * turned_on.clamp_min(0)
    stays_off = h + (normals * minus).sum(1) <= 0
    missed = stays_off & (turned_on > 0) & (gain > (g * minus).sum(1))
    holds = None
    if bool(missed.any()):
        best = torch.where(missed, gain, -torch.inf).argmax()
        ends = x + torch.stack([minus[0], plus[best]]).view(2, *x.shape[1:])
        with torch.no_grad():
            taken, other = (objective(problem.model(end[None])).item() for end in ends)
        holds = other > taken
    return Sides(int(near.sum()), int(missed.sum()), holds)


def all_normals(sites: Sites, x: Tensor, gates: list[Tensor]) -> Tensor:
    """The normals of all neurons at `x`, `(1, *shape)`: `(neurons, n)`."""
    n = x.numel()
    directions = torch.eye(n, dtype=x.dtype, device=x.device).view(n, *x.shape)
    return torch.cat([move.flatten(1) for move in moves(sites, x, gates, directions)], 1).T
