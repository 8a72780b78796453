"""How far steps go beyond the facet ahead of them.

For a step from `x` to `x'`, the paper's `alpha*` is the distance from `x` to the nearest facet of
its polytope in the direction of `x' - x`: exact, because the network is affine up to there. The
paper's section 4: a step that is longer leaves the polytope on which its gradient is valid.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from facetwalk.batching import row_norm
from facetwalk.experiments.gradients.walks import Walk
from facetwalk.sites import first_facet, pattern

_LONGEST = 1e12
"""What counts as the ratio of a step that begins on a facet."""
_TOGETHER = 10
"""Steps that are looked at in one pass."""


@dataclass(frozen=True)
class Steps:
    """Of T steps of B walks, each `(T, B)`; NaN where a walk stood still."""

    ratio: Tensor
    """Length of the step divided by alpha*."""
    flips: Tensor
    """Neurons that are on before and off after it, or off and on."""
    lost: Tensor
    """1 where the objective is lower after the step, else 0."""

    @property
    def left(self) -> Tensor:
        """1 where the step leaves its polytope, else 0."""
        return torch.where(self.flips.isnan(), torch.nan, (self.flips > 0).to(self.flips))


def look_at_steps(model: nn.Module, walk: Walk) -> Steps:
    """All steps between the points of a walk.

    >>> net = nn.Sequential(nn.Linear(1, 1), nn.ReLU()).double().eval()
    >>> _ = net[0].weight.data.fill_(1.0), net[0].bias.data.zero_()
    >>> x = torch.tensor([-1.0, -0.5, 0.5, 0.5], dtype=torch.float64).view(4, 1, 1)
    >>> steps = look_at_steps(net, Walk(x, net(x)[:, :, 0].detach()))
    >>> steps.ratio.flatten().tolist(), steps.flips.flatten().tolist()
    ([0.5, 2.0, nan], [0.0, 1.0, nan])
    """
    before, after = walk.x[:-1], walk.x[1:]
    found = []
    for some in torch.arange(len(before)).split(_TOGETHER):
        x, end = before[some].flatten(0, 1), after[some].flatten(0, 1)
        stood = row_norm(end - x) == 0
        ratio = (1 / first_facet(model, x, end - x)).clamp_max(_LONGEST)
        flips = (pattern(model, x) ^ pattern(model, end)).count().to(ratio)
        both = torch.stack([ratio, flips]).masked_fill(stood, torch.nan)
        found.append(both.unflatten(1, (len(some), -1)))
    ratio, flips = torch.cat(found, 1)
    lost = (walk.value[1:] < walk.value[:-1]).to(ratio).masked_fill(ratio.isnan(), torch.nan)
    return Steps(ratio, flips, lost)
