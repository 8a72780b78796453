"""The paper's equations as pure functions; each names the label it has in the paper.

Pre-activations `h`, gates `eta` and normal norms `p_norm` of one site are `(B, *site.shape)`;
what is summed over neurons is `(B,)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from facetwalk.batching import per_row
from facetwalk.sites import Sites, pattern_of

Reduction = Literal["sum", "max"]


def sigmoid(eta: Tensor, alpha: float) -> Tensor:
    """`s_alpha(eta) = 1 / (1 + exp(-alpha (eta - 1/2)))` (after `eq::sigmoid_network`)."""
    return torch.sigmoid(alpha * (eta - 0.5))


def is_feasible(h: Tensor, eta: Tensor) -> Tensor:
    """Whether gates agree with the pattern of `h` (`feasible2`; `feasible` for binary gates).

    A neuron on its own hyperplane has no side to disagree with.
    """
    return torch.where(h > 0, eta >= 0.5, (eta < 0.5) | (h == 0))


def penalty(h: Tensor, eta: Tensor, p_norm: Tensor, reduction: Reduction = "sum") -> Tensor:
    """The pattern penalty `L_i` (`eq::constraint_loss`): distance to the pattern in `eta`.

    The paper's two terms are one: `relu(h * (1/2 - eta)) / ||P||`. With `max` each of the two
    is reduced by its largest neuron instead of the sum, as in the released code.
    """
    if reduction == "sum":
        return (torch.relu(h * (0.5 - eta)) / p_norm).flatten(1).sum(1)
    wrongly_off = torch.relu(h / p_norm * torch.relu(0.5 - eta))
    wrongly_on = torch.relu(-h / p_norm * torch.relu(eta - 0.5))
    return wrongly_off.flatten(1).amax(1) + wrongly_on.flatten(1).amax(1)


def lagrangian(score: Tensor, penalties: Sequence[Tensor], beta: Tensor) -> Tensor:
    """`L* = -J + beta * sum_i L_i` (`eq::objective`), for each problem: `(B,)`."""
    return -score + beta * torch.stack(list(penalties)).sum(0)


@dataclass(frozen=True)
class PenaltyTerms:
    """The penalty of one site and its derivatives."""

    value: Tensor
    """`L_i`, `(B,)`."""
    on_pre_activations: Tensor
    """`dL_i / dh`: what multiplies `dh / dx` in `eq::input_gradient`."""
    on_gates: Tensor
    """`dL_i / d eta`: the unnumbered equation after it."""


def penalty_terms(
    h: Tensor, eta: Tensor, p_norm: Tensor, reduction: Reduction = "sum"
) -> PenaltyTerms:
    """The penalty with its derivatives, in closed form.

    Two places where the paper prints something else: its `eq::input_gradient` keeps only the sign
    of the disagreement `1/2 - eta`, the derivative has its size too; and on the gates it prints
    `|h| / ||P||`, the derivative is `-h / ||P||`, which pulls a gate to the side where `h` is.
    """
    pull = (0.5 - eta) / p_norm
    counted = masked(pull, h * pull)
    if reduction == "max":
        at, cost = worst(h.flatten(1), pull.flatten(1), [h[0].numel()])
        of_worst = masked(pull.flatten(1).gather(1, at[:, :, 0]), cost[:, :, 0])
        counted = torch.zeros_like(counted.flatten(1)).scatter_add_(1, at[:, :, 0], of_worst)
        counted = counted.view_as(h)
    return PenaltyTerms(
        (h * counted).flatten(1).sum(1), counted, masked(-h / p_norm, counted.abs())
    )


def worst(h: Tensor, pull: Tensor, sizes: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The neuron of each site that costs most of those wrongly off, and of those wrongly on.

    `h` and `pull = (1/2 - eta) / ||P||` are `(B, neurons)`, with the neurons of sites of these
    sizes side by side. Returns positions within the site and costs, `(B, 2, sites)`; the cost is 0
    where no neuron is on that side.

    >>> h, pull = torch.tensor([[1.0, 2.0, 3.0, -4.0]]), torch.tensor([[0.5, 0.5, -0.5, -0.5]])
    >>> at, cost = worst(h, pull, [4])
    >>> at.tolist(), cost.tolist()
    ([[[1], [3]]], [[[1.0], [2.0]]])
    """
    cost = h * pull
    sides = cost.new_empty(len(h), 2, h.shape[1])
    off, on = sides.unbind(1)
    masked(cost, pull, out=off)
    torch.sub(cost, off, out=on)
    largest = [part.max(2) for part in sides.split(list(sizes), 2)]
    at = torch.stack([each.indices for each in largest], 2)
    return at, torch.stack([each.values for each in largest], 2).clamp_min_(0)


def masked(values: Tensor, where_positive: Tensor, out: Tensor | None = None) -> Tensor:
    """`values` where the other tensor is positive, else 0: one kernel and no mask in memory."""
    if out is not None:
        return torch.ops.aten.threshold_backward.grad_input(
            values, where_positive, 0, grad_input=out
        )
    return torch.ops.aten.threshold_backward(values, where_positive, 0)


def input_gradient(
    sites: Sites,
    x: Tensor,
    etas: Sequence[Tensor],
    alpha: float,
    beta: Tensor,
    p_norms: Sequence[Tensor],
    objective: Callable[[Tensor], Tensor],
) -> Tensor:
    """`grad_x L*` written as `eq::input_gradient` writes it: the objective through the surrogate
    network's normals, plus each disagreeing neuron's normal in the plain network. `(B, *shape)`.
    """
    leaf = x.detach().requires_grad_()
    with torch.enable_grad():
        output, _ = sites.gated(leaf, [sigmoid(eta, alpha) for eta in etas])
        (through_surrogate,) = torch.autograd.grad(objective(output).sum(), leaf)
        _, seen = sites.pre_activations(leaf)
        weights = [
            per_row(beta, h) * penalty_terms(h.detach(), eta, p_norm).on_pre_activations
            for h, eta, p_norm in zip(seen, etas, p_norms, strict=True)
        ]
        (through_network,) = torch.autograd.grad(seen, leaf, weights)
    return through_network - through_surrogate


def steepest_direction(
    sites: Sites, x: Tensor, objective: Callable[[Tensor], Tensor]
) -> list[Tensor]:
    """The steepest activation-descent direction (`eqn::steepest_direction`) at each site.

    -1 for a live neuron to be turned off, 1 for a dead one to be turned on, else 0, for the
    score that `objective` gives to outputs; `(B, *site.shape)`.
    """
    with torch.no_grad():
        _, seen = sites.pre_activations(x)
    nus = pattern_of(sites, seen).gates(x.dtype)
    downstream = gate_gradient(sites, x, nus, objective)
    result = []
    for h, nu, slope in zip(seen, nus, downstream, strict=True):
        side = _signed(nu - 0.5)
        result.append(side * torch.minimum(_signed(slope) * side, side.new_zeros(())) * (h != 0))
    return result


def gate_gradient(
    sites: Sites, x: Tensor, gates: Sequence[Tensor], objective: Callable[[Tensor], Tensor]
) -> list[Tensor]:
    """`(dJ / d gate) / h` at each site of the gated network: what switching a neuron is worth
    for each unit of its pre-activation. Zero where `h` is. `(B, *site.shape)`.
    """
    leaves = [gate.detach().requires_grad_() for gate in gates]
    with torch.enable_grad():
        output, seen = sites.gated(x, leaves)
        gradients = torch.autograd.grad(objective(output).sum(), leaves, materialize_grads=True)
    return [
        torch.where(h == 0, 0.0, gradient / h)
        for h, gradient in zip((h.detach() for h in seen), gradients, strict=True)
    ]


def surrogate_direction(
    sites: Sites,
    x: Tensor,
    etas: Sequence[Tensor],
    alpha: float,
    objective: Callable[[Tensor], Tensor],
) -> list[Tensor]:
    """`partial eta` of the proof of Proposition 5.4: the surrogate's gradient on its gates,
    for each unit of pre-activation; `(B, *site.shape)` a site.
    """
    gates = [sigmoid(eta, alpha) for eta in etas]
    downstream = gate_gradient(sites, x, gates, objective)
    return [
        slope * gate * (1 - gate) * alpha for slope, gate in zip(downstream, gates, strict=True)
    ]


def _signed(values: Tensor) -> Tensor:
    """The paper's sgn-hat: 1 where positive, else -1."""
    return 2 * (values > 0).to(values.dtype) - 1
