"""Activation patterns: which neurons are live, where they differ, where the next facet is."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn.attention import SDPBackend, sdpa_kernel

from facetwalk.batching import per_row, row_norm
from facetwalk.sites.discovery import Sites, discover
from facetwalk.types import InputError


@dataclass(frozen=True)
class Pattern:
    """The activation pattern of a batch of inputs: `live[i]` is bool, `(B, *site.shape)`.

    A neuron is live where its pre-activation is positive. The paper's constraint
    (label `feasible`) also counts zero as live; the value is the same, and with ours so is
    the gradient that torch gives.
    """

    names: tuple[str, ...]
    live: tuple[Tensor, ...]

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.live)

    def __xor__(self, other: Pattern) -> Pattern:
        """The neurons on which two patterns differ."""
        if self.names != other.names:
            raise InputError("patterns of different models or sites cannot be compared")
        pairs = zip(self.live, other.live, strict=True)
        return Pattern(self.names, tuple(a ^ b for a, b in pairs))

    def count(self) -> Tensor:
        """How many neurons are set, for each input: `(B,)`."""
        return torch.stack([live.flatten(1).sum(1) for live in self.live]).sum(0)

    def gates(self, dtype: torch.dtype = torch.float32) -> list[Tensor]:
        """The pattern as numbers, ready for `Sites.gated`."""
        return [live.to(dtype) for live in self.live]


def pattern_of(sites: Sites, pre_activations: Sequence[Tensor]) -> Pattern:
    """The pattern that pre-activations `(B, *site.shape)` show."""
    return Pattern(tuple(site.name for site in sites), tuple(h > 0 for h in pre_activations))


def pattern(model: nn.Module, x: Tensor) -> Pattern:
    """The activation pattern of `model` at each row of `x`.

    >>> net = nn.Sequential(nn.Linear(1, 2), nn.ReLU()).eval()
    >>> _ = net[0].weight.data.copy_(torch.tensor([[1.0], [-1.0]])), net[0].bias.data.zero_()
    >>> a, b = pattern(net, torch.tensor([[2.0]])), pattern(net, torch.tensor([[-2.0]]))
    >>> a.live[0].tolist(), (a ^ b).count().tolist()
    ([[True, False]], [2])
    """
    with torch.no_grad():
        sites = discover(model, x)
        return pattern_of(sites, sites.pre_activations(x)[1])


def tangents(sites: Sites, x: Tensor, gates: Sequence[Tensor], direction: Tensor) -> list[Tensor]:
    """`P v` at each site for frozen gates: how each pre-activation moves along `direction`.

    Forward-mode differentiation, so exact for every architecture; all shapes `(B, ...)`.
    """
    with (
        torch.no_grad(),
        forward_ad.dual_level(),
        sdpa_kernel(SDPBackend.MATH),  # the only backend with forward-mode derivatives
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", DeprecationWarning)  # torch's own, about TorchScript
        _, seen = sites.gated(forward_ad.make_dual(x, direction), gates)
        moved = [forward_ad.unpack_dual(z).tangent for z in seen]
        return [
            torch.zeros_like(z) if t is None else t.detach()
            for z, t in zip(seen, moved, strict=True)
        ]


def first_facet(model: nn.Module, x: Tensor, direction: Tensor) -> Tensor:
    """How far each row of `x` may move along `direction` before its pattern changes: `(B,)`.

    This is the paper's alpha* (section 4): the network is affine on `[x, x + alpha* d)`.
    Infinite where no facet lies ahead.

    >>> net = nn.Sequential(nn.Linear(1, 1), nn.ReLU()).eval()
    >>> _ = net[0].weight.data.fill_(1.0), net[0].bias.data.fill_(0.0)
    >>> first_facet(net, torch.tensor([[3.0], [3.0]]), torch.tensor([[-0.5], [0.5]])).tolist()
    [6.0, inf]
    """
    if x.shape != direction.shape:
        raise InputError(
            f"the direction has shape {tuple(direction.shape)} and x {tuple(x.shape)}: "
            "they must be the same"
        )
    sites = discover(model, x)
    with torch.no_grad():
        _, seen = sites.pre_activations(x)
    gates = pattern_of(sites, seen).gates(x.dtype)
    length = row_norm(direction).clamp_min(torch.finfo(x.dtype).tiny)
    slopes = tangents(sites, x, gates, direction / per_row(length, direction))
    step = torch.full_like(length, torch.inf)
    for h, slope in zip(seen, slopes, strict=True):
        ahead = torch.where(h > 0, slope < 0, slope > 0)
        steps = torch.where(ahead, -h / slope, torch.inf)
        step = torch.minimum(step, steps.flatten(1).amin(1))
    return step / length
