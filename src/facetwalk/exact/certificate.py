"""Is a point the best one near by?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from facetwalk.exact.arguments import positive
from facetwalk.exact.first_look import first_look
from facetwalk.exact.proof import Proof
from facetwalk.exact.proving import maximize
from facetwalk.problem import Problem, Result
from facetwalk.spaces import Box, LinfBall
from facetwalk.types import InputError

_SHARE = 1e-4
"""The tolerance, as a share of the size of the value, or of 1 where that is smaller."""
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
    x: Tensor | Result,
    radius: float,
    *,
    tolerance: float | None = None,
    time_limit: float | None = 60.0,
    seed: int = 0,
) -> Certificate:
    """Is `x`, `(*shape)`, a maximum among the points of the space within `radius` of each entry?

    The problem must be a single one, and `x` may be its `Result`; of the result of several pass
    one row, `result.x[b]`, with its problem. `tolerance` is how much better another point may be:
    1e-4 of the size of the value at `x`, or 1e-4 where that is below 1, unless you say otherwise;
    networks in float32 round by a share of their values. `time_limit` are the seconds it may take;
    None sets no limit.

    >>> import facetwalk as fw
    >>> from torch import nn
    >>> net = nn.Sequential(nn.Linear(1, 1), nn.ReLU()).eval()
    >>> _ = net[0].weight.data.fill_(1.0), net[0].bias.data.fill_(0.0)
    >>> problem = fw.Problem(net, fw.objectives.Output(0), fw.Box(-1, 1, shape=(1,)))
    >>> [local_certificate(problem, torch.tensor([v]), 0.5).holds for v in (1.0, -0.5, -0.25)]
    [True, True, False]
    """
    radius = positive("radius", radius)
    tolerance = None if tolerance is None else positive("tolerance", tolerance)
    space = problem.space
    if not isinstance(space, (Box, LinfBall)) or space.count != 1:
        raise InputError("a certificate needs a Box or an LinfBall with one problem")
    point = _point(x, space.shape)
    if not bool(space.to(point.device, point.dtype).contains(point).all()):
        raise InputError("x lies outside the space: project it with space.project")
    exact = space.to(point.device, torch.float64)
    point = exact.project(point.double())
    near = Box(exact.project(point - radius), exact.project(point + radius), shape=space.shape)
    value = _value(problem, point)
    tolerance = _SHARE * max(1.0, abs(value)) if tolerance is None else tolerance
    threshold = value + tolerance
    proof = maximize(
        problem.model,
        near,
        problem.objective,
        time_limit=time_limit,
        gap=_CLOSE * tolerance,
        threshold=threshold,
        x0=point,
        seed=seed,
    )
    better = proof.x if proof.value > threshold else None
    return Certificate(proof.bound <= threshold, better, proof)


def _point(x: Any, shape: tuple[int, ...]) -> Tensor:
    """What is to be certified as one row, `(1, *shape)`."""
    if isinstance(x, Result):
        if len(x.x) != 1:
            raise InputError(
                f"the result has {len(x.x)} points: pass one of them, result.x[b], with its problem"
            )
        x = x.x[0]
    if not isinstance(x, Tensor):
        raise InputError(
            f"x must be a Result or a tensor of shape {shape}, such as a row of result.x; "
            f"it is a {type(x).__name__}"
        )
    if tuple(x.shape) != shape:
        raise InputError(f"x has shape {tuple(x.shape)}, and the points of the space have {shape}")
    return (x if x.is_floating_point() else x.double()).detach()[None]


def _value(problem: Problem, point: Tensor) -> float:
    goals, graph = first_look(problem.model, problem.space, problem.objective)
    return goals.best(point.to(graph.device)).item()
