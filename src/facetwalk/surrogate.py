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
    counted = counted_pull(h, pull, reduction)
    return PenaltyTerms(
        (h * counted).flatten(1).sum(1), counted, masked(-h / p_norm, counted.abs())
    )


def counted_pull(
    h: Tensor, pull: Tensor, reduction: Reduction, sizes: Sequence[int] | None = None
) -> Tensor:
    """`pull = (1/2 - eta) / ||P||` of the neurons that make up a site's penalty; else 0.

    With `sum` these are all that disagree, with `max` the worst of those wrongly off (`pull`
    positive) and of those wrongly on. Several sites may be joined to `(B, neurons)`; `sizes` are
    then their numbers of neurons.
    """
    cost = h * pull
    if reduction == "sum":
        return masked(pull, cost)
    signed = torch.relu(cost).copysign_(pull).flatten(1)
    sides = torch.stack([signed, -signed], 1)
    indices, costs, start = [], [], 0
    for part in sides.split(list(sizes) if sizes else sides.shape[2], 2):
        worst = part.max(2)
        indices.append(worst.indices + start)
        costs.append(worst.values)
        start += part.shape[2]
    at = torch.stack(indices, 2).flatten(1)
    flat = pull.flatten(1)
    chosen = masked(flat.gather(1, at), torch.stack(costs, 2).flatten(1))
    return torch.zeros_like(flat).scatter_add_(1, at, chosen).view_as(pull)


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
