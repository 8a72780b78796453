"""Counts the live neurons at each site of a network, and audits that it is affine."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from facetwalk.cli.notes import affine_notes
from facetwalk.sites import Site, audit, discover, pattern_of

_ROWS_AT_ONCE = 64


@dataclass(frozen=True)
class Inspection:
    """The sites of a network, and what they do on some inputs."""

    sites: tuple[Site, ...]
    live: tuple[float, ...]
    """The share of live neurons at each site, over all inputs."""
    notes: tuple[str, ...]
    """Where the network is not affine with its gates frozen; nothing if it is."""

    @property
    def neurons(self) -> int:
        return sum(site.neurons for site in self.sites)

    @property
    def live_overall(self) -> float:
        pairs = zip(self.sites, self.live, strict=True)
        return sum(site.neurons * share for site, share in pairs) / self.neurons


def inspect_model(model: nn.Module, x: Tensor, elsewhere: Tensor) -> Inspection:
    """Look at `model` on inputs `x`, `(B, *shape)`; the audit goes from the first of them to
    `elsewhere`, `(1, *shape)`.
    """
    sites = discover(model, x)
    with affine_notes() as notes:
        audit(sites, x[:1], elsewhere)
    live = torch.zeros(len(sites), dtype=torch.float64)
    for rows in x.split(_ROWS_AT_ONCE):
        with torch.no_grad():
            pattern = pattern_of(sites, sites.pre_activations(rows)[1])
        live += torch.stack([at_site.sum() for at_site in pattern])
    of_each = torch.tensor([site.neurons for site in sites]) * len(x)
    return Inspection(sites.sites, tuple((live / of_each).tolist()), tuple(notes))
