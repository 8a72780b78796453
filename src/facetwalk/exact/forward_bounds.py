"""Linear bounds of a small network over many boxes at once.

Every neuron carries affine bounds in the few inputs forward through the network; the goal of each
box is then bounded backward, which is tighter and costs little. A box is
`center + radius * t` with t in [-1, 1]^inputs; boxes are columns: the last dimension.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from facetwalk.exact.dense import Dense, Layer
from facetwalk.exact.relaxation import Relaxation, relax


class _Between(NamedTuple):
    """`middle + slope @ t`, give or take `spread + tilt @ t`."""

    middle: Tensor
    """`(width, B)`."""
    slope: Tensor
    """`(width, inputs, B)`."""
    spread: Tensor | None
    tilt: Tensor | None


class Planes(NamedTuple):
    """For each box an affine function above its goal: `slope @ x + constant`."""

    slope: Tensor
    """`(inputs, B)`."""
    constant: Tensor
    """`(B,)`."""
    bound: Tensor
    """The largest value of the function in the box, `(B,)`."""
    looseness: Tensor
    """`(inputs, B)`: how much of the relaxation of the neurons is owed to each input."""


def planes_above(dense: Dense, low: Tensor, high: Tensor, goal: Tensor) -> Planes:
    """Bound one goal in each box: `low` and `high` are `(inputs, B)`, `goal` is int64 `(B,)`."""
    center, radius = (low + high) / 2, (high - low) / 2
    known: list[_Between] = []
    lines: list[Relaxation] = []
    sees = [set(later.hidden) for later in dense.layers[:-1]]
    for number, layer in enumerate(dense.layers[:-1]):
        z = _affine(layer, known, center, radius)
        below, above = _ends(z)
        lines.append(relax(below, above))
        needed = any(number in later for later in sees[number + 1 :])
        known.append(_through_hinge(z, lines[-1]) if needed else z)
    return _backward(dense, lines, center, radius, goal)


def _affine(layer: Layer, known: list[_Between], center: Tensor, radius: Tensor) -> _Between:
    inputs, boxes = center.shape
    width = len(layer.bias)
    middle, slope, spread, tilt = layer.bias, None, None, None
    if layer.input is not None:
        middle = middle + layer.input @ center
        slope = layer.input[:, :, None] * radius
    for site, matrix in layer.hidden.items():
        source, size = known[site], matrix.abs()
        middle = middle + matrix @ source.middle
        slope = _plus(slope, (matrix @ source.slope.flatten(1)).view(width, inputs, boxes))
        if source.spread is not None and source.tilt is not None:
            spread = _plus(spread, size @ source.spread)
            tilt = _plus(tilt, (size @ source.tilt.flatten(1)).view(width, inputs, boxes))
    if slope is None:
        slope = torch.zeros(width, inputs, boxes, dtype=center.dtype, device=center.device)
    return _Between(middle.expand(width, boxes), slope, spread, tilt)


def _plus(total: Tensor | None, more: Tensor) -> Tensor:
    return more if total is None else total.add_(more)


def _ends(z: _Between) -> tuple[Tensor, Tensor]:
    """The smallest and the largest value of each neuron in each box, `(width, B)`."""
    if z.spread is None or z.tilt is None:
        reach = z.slope.abs().sum(1)
        return z.middle - reach, z.middle + reach
    above = z.middle + z.spread + (z.slope + z.tilt).abs_().sum(1)
    return z.middle - z.spread - (z.slope - z.tilt).abs_().sum(1), above


def _through_hinge(z: _Between, line: Relaxation) -> _Between:
    mean, half = (line.upper + line.lower) / 2, (line.upper - line.lower) / 2
    offset = line.offset / 2
    if z.spread is None or z.tilt is None:
        return _Between(
            mean * z.middle + offset,
            mean[:, None] * z.slope,
            half * z.middle + offset,
            half[:, None] * z.slope,
        )
    return _Between(
        mean * z.middle + half * z.spread + offset,
        mean[:, None] * z.slope + half[:, None] * z.tilt,
        half * z.middle + mean * z.spread + offset,
        half[:, None] * z.slope + mean[:, None] * z.tilt,
    )


def _backward(
    dense: Dense, lines: list[Relaxation], center: Tensor, radius: Tensor, goal: Tensor
) -> Planes:
    output = dense.layers[-1]
    weights = {site: matrix.T[:, goal] for site, matrix in output.hidden.items()}
    constant = output.bias[:, 0][goal]
    slope = torch.zeros_like(center) if output.input is None else output.input.T[:, goal]
    looseness = torch.zeros_like(center)
    for site in reversed(range(len(lines))):
        weight = weights.pop(site, None)
        if weight is None:
            continue
        line, layer = lines[site], dense.layers[site]
        rising = weight.clamp(min=0)
        passed = rising * line.upper + (weight - rising) * line.lower
        constant = constant + (rising * line.offset).sum(0) + layer.bias[:, 0] @ passed
        if layer.input is not None:
            slope = slope + layer.input.T @ passed
            loose = weight.abs_() * (line.upper != line.lower)
            looseness = looseness + layer.input.abs().T @ loose
        for earlier, matrix in layer.hidden.items():
            more = matrix.T @ passed
            weights[earlier] = weights[earlier] + more if earlier in weights else more
    bound = constant + (slope * center).sum(0) + (slope.abs() * radius).sum(0)
    return Planes(slope, constant, bound, looseness)
