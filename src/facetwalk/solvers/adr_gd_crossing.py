"""Where ADR-GD's plain and surrogate networks pass a site side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from facetwalk import surrogate


@dataclass
class Crossing:
    """What one site hands over between the passes; all tensors are `(B, n)`."""

    gate: Tensor
    of_gate: Tensor
    """Takes the loss's gradient on the gates, in the backward pass; see `came_back`."""
    plain: Tensor = field(init=False)
    """Pre-activations of the plain half, known after the forward pass."""
    gated: Tensor = field(init=False)
    """Those of the gated half."""
    push: Callable[[Tensor], None] | None = None
    """Adds the penalty's gradient to that on `plain`: set between the passes."""
    came_back: bool = False
    """False where the objective does not depend on the site."""


class HalfGated(torch.autograd.Function):
    """ReLU on the first half of a batch, gates on the second: a site of both networks at once.

    The penalty needs no graph of its own: its gradient enters by `push`.
    """

    @staticmethod
    def forward(ctx: Any, z: Tensor, crossing: Crossing) -> Tensor:
        ctx.crossing, rows = crossing, len(crossing.gate)
        z = z.detach()
        crossing.plain, crossing.gated = z[:rows], z[rows:]
        out = torch.empty_like(z)
        torch.clamp_min(crossing.plain, 0, out=out[:rows])
        torch.mul(crossing.gated, crossing.gate, out=out[rows:])
        return out

    @staticmethod
    def backward(ctx: Any, *of_outputs: Tensor) -> tuple[Tensor, None]:
        (of_output,) = of_outputs
        crossing, rows = ctx.crossing, len(ctx.crossing.gate)
        of_z = torch.empty_like(of_output)
        of_plain, of_gated = of_z[:rows], of_output[rows:]
        surrogate.masked(of_output[:rows], crossing.plain, out=of_plain)
        if crossing.push is not None:
            crossing.push(of_plain)
        torch.mul(of_gated, crossing.gate, out=of_z[rows:])
        torch.mul(of_gated, crossing.gated, out=crossing.of_gate)
        crossing.came_back = True
        return of_z, None
