"""Norms of the neurons' hyperplane normals: exact, probed, and averaged over probes.

With frozen gates the pre-activation of neuron j is affine in the input; its gradient P_j is
the normal of the hyperplane on which the neuron switches, and `|h_j| / ||P_j||` the distance
to that hyperplane. For all neurons at once, `E[(P_j v)^2] = ||P_j||^2` over random signs v, and
the sum over the unit vectors is exact.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from facetwalk.batching import per_row
from facetwalk.sites import Sites, discover, pattern_of, tangents
from facetwalk.streams import Streams

NormalsMethod = Literal["auto", "exact", "probed"]

EXACT_UP_TO = 128
"""Inputs with at most this many entries get exact norms when the method is `auto`."""

_PASS_ROWS = 4096
"""Rows of one probing pass: bounds its memory."""


def resolve(method: NormalsMethod, inputs: int) -> Literal["exact", "probed"]:
    """What `auto` means for a network with this many inputs."""
    if method == "auto":
        return "exact" if inputs <= EXACT_UP_TO else "probed"
    return method


def moves(
    sites: Sites, x: Tensor, gates: Sequence[Tensor], directions: Tensor, affine: bool = False
) -> list[Tensor]:
    """`P v` at each site, `(k, B, *site.shape)`, for directions `(k, B, *shape)`."""
    if affine:
        return _differences(sites, gates, directions)
    try:
        return _tangents_of_many(sites, x, gates, directions)
    except RuntimeError:  # something in the model cannot be vectorised
        k, rows = directions.shape[:2]
        copies = [gate.repeat(k, *[1] * (gate.ndim - 1)) for gate in gates]
        there, ways = x.repeat(k, *[1] * (x.ndim - 1)), directions.flatten(0, 1)
        try:
            moved = tangents(sites, there, copies, ways)
        except RuntimeError:  # or has no derivative in forward mode
            moved = _secants(sites, there, copies, ways)
        return [move.unflatten(0, (k, rows)) for move in moved]


def _secants(sites: Sites, x: Tensor, gates: Sequence[Tensor], directions: Tensor) -> list[Tensor]:
    """`P v` by a small step to each side, for directions `(B, *shape)`."""
    step = torch.finfo(x.dtype).eps ** (1 / 3) * max(1.0, float(x.abs().max()))
    with torch.no_grad():
        ahead, behind = (sites.gated(x + side * directions, gates)[1] for side in (step, -step))
    return [(a - b) / (2 * step) for a, b in zip(ahead, behind, strict=True)]


def _differences(sites: Sites, gates: Sequence[Tensor], directions: Tensor) -> list[Tensor]:
    """For a network that is affine with these gates: `h(v) - h(0)`."""
    seen: list[Tensor] = []
    points = torch.cat([directions, torch.zeros_like(directions[:1])])

    def gate(i: int, z: Tensor) -> Tensor:
        h = z.unflatten(0, points.shape[:2])
        seen.append(h[:-1] - h[-1])
        return (gates[i] * h).flatten(0, 1)

    with torch.no_grad():
        sites.run(points.flatten(0, 1), gate)
    return seen


def _tangents_of_many(
    sites: Sites, x: Tensor, gates: Sequence[Tensor], directions: Tensor
) -> list[Tensor]:
    """Forward-mode derivatives in many directions, with one pass for the point that they share."""

    def at_sites(point: Tensor) -> tuple[Tensor, ...]:
        return tuple(sites.gated(point, gates)[1])

    def along(direction: Tensor) -> tuple[Tensor, ...]:
        return torch.func.jvp(at_sites, (x,), (direction,))[1]

    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch's own, about TorchScript
        warnings.filterwarnings("ignore", "There is a performance drop")  # still right
        return list(torch.vmap(along)(directions))


def _lengths(
    sites: Sites, x: Tensor, gates: Sequence[Tensor], directions: Tensor, affine: bool
) -> list[Tensor]:
    """The root of the sum over k of `(P v_k)^2`, for directions `(k, B or 1, *shape)`."""
    lengths: list[Tensor] = []
    for part in directions.split(max(1, _PASS_ROWS // len(x))):
        part = part.expand(len(part), *x.shape).contiguous()
        moved = moves(sites, x, gates, part, affine)
        of_part = [move.square().sum(0).sqrt_() for move in moved]
        lengths = list(map(torch.hypot, lengths, of_part)) if lengths else of_part
    return lengths


def exact(
    sites: Sites,
    x: Tensor,
    gates: Sequence[Tensor],
    affine: bool = False,
    scale: Tensor | None = None,
) -> list[Tensor]:
    """`||P_j||` for every neuron, by one pass for each entry of the input.

    `x` is `(B, *shape)`; gates and results are `(B, *site.shape)`. Forward-mode derivatives
    serve every architecture; for a network that is `affine` once its gates are frozen (see
    `sites.audit`), plain differences give the same at less than half the cost. With a `scale`,
    broadcastable to `(B, *shape)`, inputs are measured in that unit: `||P_j * scale||`.
    """
    n = x[0].numel()
    basis = torch.eye(n, dtype=x.dtype, device=x.device).reshape(n, 1, *x.shape[1:])
    return _scaled_lengths(sites, x, gates, basis, affine, scale)


def probed(
    sites: Sites,
    x: Tensor,
    gates: Sequence[Tensor],
    random: Streams,
    probes: int,
    affine: bool = False,
    scale: Tensor | None = None,
) -> list[Tensor]:
    """An estimate of `||P_j||` with relative error about `1 / sqrt(2 probes)`; see `exact`."""
    signs = random.signs((probes, *x.shape[1:]), x.dtype).transpose(0, 1)
    lengths = _scaled_lengths(sites, x, gates, signs, affine, scale)
    return [length.div_(math.sqrt(probes)) for length in lengths]


def _scaled_lengths(
    sites: Sites,
    x: Tensor,
    gates: Sequence[Tensor],
    directions: Tensor,
    affine: bool,
    scale: Tensor | None,
) -> list[Tensor]:
    if scale is None:
        return _lengths(sites, x, gates, directions, affine)
    largest = scale.flatten(1).amax(1).clamp_min(torch.finfo(x.dtype).tiny)
    directions = directions * (scale / per_row(largest, scale))  # of size 1: no digits are lost
    lengths = _lengths(sites, x, gates, directions, affine)
    return [length.mul_(per_row(largest, length)) for length in lengths]


def averaged(norms: Tensor, estimate: Tensor, share: float) -> Tensor:
    """Norms moved a share of the way to another estimate, in their squares.

    Probed estimates are noisy and gates change slowly: a mean over several is better than each.

    >>> averaged(torch.tensor([1.0]), torch.tensor([7.0]), 0.5).item()
    5.0
    """
    return norms.square().lerp_(estimate.square(), share).sqrt_()


def distances(model: nn.Module, x: Tensor) -> list[Tensor]:
    """The distance from each row of `x` to every neuron's hyperplane, `(B, *site.shape)` a site.

    Exact; the hyperplane is that of the affine piece on which `x` lies. Infinite for a neuron
    that does not depend on the input there.

    >>> net = nn.Sequential(nn.Linear(2, 1), nn.ReLU()).eval()
    >>> _ = net[0].weight.data.copy_(torch.tensor([[3.0, 4.0]])), net[0].bias.data.fill_(0.0)
    >>> distances(net, torch.tensor([[1.0, 1.0]]))[0].tolist()
    [[1.399999976158142]]
    """
    sites = discover(model, x)
    with torch.no_grad():
        _, seen = sites.pre_activations(x)
    norms = exact(sites, x, pattern_of(sites, seen).gates(x.dtype))
    return [
        torch.where(norm > 0, h.abs() / norm, torch.inf)
        for h, norm in zip(seen, norms, strict=True)
    ]
