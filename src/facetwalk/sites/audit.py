"""Checks that a network is affine once its gates are frozen, as the theory assumes."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from facetwalk.sites.discovery import Sites
from facetwalk.sites.patterns import pattern_of
from facetwalk.types import NotAffineWarning

_TOLERANCE = 1e-3
"""Relative to the largest pre-activation of the site: far above rounding in float32."""
_ROUNDINGS = 8
"""So many last digits may be wrong in types of 16 bits."""


def audit(sites: Sites, a: Tensor, b: Tensor) -> str | None:
    """Where the network with the gates of `a` stops being affine between `a` and `b`.

    Returns None for an affine network, otherwise the name of the first site (or `"output"`)
    whose value at the middle is not the mean of its values at both ends, and warns: something
    before it is neither affine nor in the op table, such as a max-pool or a softmax.
    """
    with torch.no_grad():
        gates = pattern_of(sites, sites.pre_activations(a)[1]).gates(a.dtype)
        runs = [sites.gated(point, gates) for point in (a, (a + b) / 2, b)]
    seen = [[*at_sites, output] for output, at_sites in runs]
    names = [*(site.name for site in sites), "output"]
    for name, left, middle, right in zip(names, *seen, strict=True):
        if not isinstance(left, Tensor):
            continue  # an output of several parts: what leads to the sites has been checked
        scale = torch.stack([left.abs().max(), right.abs().max()]).max()
        tolerance = max(_TOLERANCE, _ROUNDINGS * torch.finfo(a.dtype).eps)
        if (middle - (left + right) / 2).abs().max() > tolerance * scale:
            warnings.warn(
                f"with its gates frozen the network is not affine before {name}: something there "
                "(a max-pool, softmax, normalisation or smooth activation) is not a known "
                "piecewise-linear function, so normals and distances hold only near the input",
                NotAffineWarning,
                stacklevel=2,
            )
            return name
    return None
