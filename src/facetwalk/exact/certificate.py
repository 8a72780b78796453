"""Is a point the best one near by?"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from facetwalk.exact.arguments import positive
from facetwalk.exact.first_look import first_look
from facetwalk.exact.proof import Proof
from facetwalk.exact.proving import maximize
from facetwalk.problem import Problem
from facetwalk.spaces import Box, LinfBall
from facetwalk.types import InputError

_CLOSE = 0.01
"""The gap of the proof, as a share of the tolerance: nearer to it than that nothing is decided."""


@dataclass(frozen=True)
class Certificate:
    """What is known of a point and its surroundings."""

    holds: bool
    """Whether no point within the radius is better by more than the tolerance."""
    better: Tensor | None
    """A point that is, `(*shape)`; None where the point holds, or where it was not found out: time
    was up, or the best is better by the tolerance almost exactly."""
    proof: Proof
    """Value and bound within the radius."""


@torch.inference_mode(False)
def local_certificate(
    problem: Problem,
    x: Tensor,
    radius: float,
    *,
    tolerance: float = 1e-4,
    time_limit: float | None = 60.0,
    seed: int = 0,
) -> Certificate:
    """Is `x`, `(*shape)`, a maximum among the points of the space within `radius` of each entry?

    Of a `Result` pass one row: `local_certificate(problem, result.x[b], 0.1)`; the problem must
    be a single one. `tolerance` is how much better another point may be,
    and `time_limit` the seconds it may take; None sets no limit.

    >>> import facetwalk as fw
    >>> from torch import nn
    >>> net = nn.Sequential(nn.Linear(1, 1), nn.ReLU()).eval()
    >>> _ = net[0].weight.data.fill_(1.0), net[0].bias.data.fill_(0.0)
    >>> problem = fw.Problem(net, fw.objectives.Output(0), fw.Box(-1, 1, shape=(1,)))
    >>> [local_certificate(problem, torch.tensor([v]), 0.5).holds for v in (1.0, -0.5, -0.25)]
    [True, True, False]
    """
    radius, tolerance = positive("radius", radius), positive("tolerance", tolerance)
    space = problem.space
    if not isinstance(space, (Box, LinfBall)) or space.count != 1:
        raise InputError("a certificate needs a Box or an LinfBall with one problem")
    if not isinstance(x, Tensor):
        raise InputError(
            f"x must be a tensor of shape {space.shape}, such as a row of result.x; "
            f"it is a {type(x).__name__}"
        )
    if tuple(x.shape) != space.shape:
        raise InputError(
            f"x has shape {tuple(x.shape)}, and the points of the space have {space.shape}"
        )
    point = (x if x.is_floating_point() else x.double()).detach()[None]
    if not bool(space.to(point.device, point.dtype).contains(point).all()):
        raise InputError("x lies outside the space: project it with space.project")
    exact = space.to(point.device, torch.float64)
    point = exact.project(point.double())
    near = Box(exact.project(point - radius), exact.project(point + radius), shape=space.shape)
    threshold = _value(problem, point) + tolerance
    proof = maximize(
        problem.model,
        near,
        problem.objective,
        time_limit=time_limit,
        gap=_CLOSE * tolerance,
        threshold=threshold,
        seed=seed,
    )
    better = proof.x if proof.value > threshold else None
    return Certificate(proof.bound <= threshold, better, proof)


def _value(problem: Problem, point: Tensor) -> float:
    goals, graph = first_look(problem.model, problem.space, problem.objective)
    return goals.best(point.to(graph.device)).item()
