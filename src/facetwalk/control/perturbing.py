"""Observations near the true ones at which a policy acts otherwise (section 6.3 of the paper)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from facetwalk.arguments import budget_of
from facetwalk.control.arguments import require_choice, require_distance
from facetwalk.control.policies import (
    LEVELS,
    as_seen,
    as_tensor,
    logits_at,
    logits_of,
    require_numbers,
)
from facetwalk.maximize import maximize
from facetwalk.objectives import CrossEntropy, DecisionCost, Objective, TargetedCrossEntropy
from facetwalk.problem import Problem
from facetwalk.recordings import Recordings
from facetwalk.solvers import Auto, Method
from facetwalk.spaces import Bounds, LinfBall
from facetwalk.types import NotAffineWarning

Aim = Literal["away", "worst", "costly"]
"""Away from the policy's own action, towards the one that it likes least, or to where it decides
for one that it likes much less."""

BUDGET = 200
"""Gradients of an attack by default: those of the paper's ADR-GD, 100 steps of two."""

_ROUNDING = 1e-6
"""By how much `eps`, times 255 for bytes, may fall short of a whole number that it stands for."""


@dataclass(frozen=True)
class Perturbed:
    """What `perturbed` found; every tensor has a row for each observation."""

    observations: Tensor
    """Floats `(N, *shape)`; of bytes, in [0, 1]."""
    actions: Tensor
    """What the policy does at them, `(N,)`."""
    own: Tensor
    """What it does at the true observations, `(N,)`."""

    @property
    def flipped(self) -> Tensor:
        """Whether the action changed, bool `(N,)`."""
        return self.actions != self.own


def perturbed(
    policy: Any,
    observations: Any,
    eps: float = 3 / 255,
    *,
    solver: Method | Auto | None = None,
    bounds: Bounds | None = None,
    aim: Aim = "away",
    seed: int = 0,
    recordings: Recordings | None = None,
) -> Perturbed:
    """Look within `eps` of observations for those at which a policy acts otherwise.

    What is maximised is the cross-entropy against the policy's own most likely action; or, aiming
    at the `"worst"`, minus that of the action with the lowest logit (for DQN, the lowest value);
    or, aiming at what is `"costly"`, how much lower the logit of the action that is taken is, at
    the true observation, than that of the policy's own (for DQN, its value).

    Args:
        policy: an agent or a policy of Stable-Baselines3 with discrete actions, or a module from
            observations to logits `(N, actions)`.
        observations: `(N, *shape)`, floats or bytes, as the policy's network takes them (images
            with channels first); bytes are divided by 255.
        eps: how far each entry may move; for bytes, as a share of 255.
        solver: any of `facetwalk.solvers`; by default `Auto` with 200 gradients.
        bounds: of every entry; by default 0 and 1 for bytes, and none for floats.
        aim: `"away"` from the policy's own action, towards the `"worst"`, or at what is `"costly"`.
        seed: observation b uses `seed + b`.
        recordings: for many calls with one policy: see `facetwalk.maximize`.

    >>> policy = torch.nn.Linear(2, 2).eval()
    >>> _ = policy.weight.data.copy_(torch.eye(2)), policy.bias.data.zero_()
    >>> found = perturbed(policy, torch.tensor([[1.0, 0.9], [1.0, 0.0]]), eps=0.1)
    >>> found.own.tolist(), found.flipped.tolist()
    ([0, 0], [True, False])
    """
    _require_method(solver, aim)
    logits = logits_of(policy)
    require_numbers(logits)
    given = as_tensor(observations)
    if bounds is None and given.dtype == torch.uint8:
        bounds = (0.0, 1.0)
    x = as_seen(given, logits)
    if not len(x):
        none = torch.zeros(0, dtype=torch.int64, device=x.device)
        return Perturbed(x, none, none)
    outputs = logits_at(x, logits)
    own = outputs.argmax(1)
    objective = _objective(aim, outputs)
    with warnings.catch_warnings():
        # Policies for images pool maxima; normals that hold only near the input still serve.
        warnings.simplefilter("ignore", NotAffineWarning)
        result = maximize(
            Problem(logits, objective, LinfBall(x, eps, bounds=bounds)),
            solver=Auto(evaluations=BUDGET) if solver is None else solver,
            seed=seed,
            recordings=recordings,
        )
    return Perturbed(result.x, logits_at(result.x, logits).argmax(1), own)


def require_attack(eps: float, solver: Method | Auto | None, aim: Aim) -> None:
    """Raise `InputError` for what `perturbed` would refuse, before there are observations."""
    require_distance("eps", eps, finite=True)
    _require_method(solver, aim)


def _require_method(solver: Method | Auto | None, aim: Aim) -> None:
    require_choice("aim", aim, Aim)
    budget_of(solver, None)


def _objective(aim: Aim, outputs: Tensor) -> Objective:
    """What to maximise, where the true observations have these logits."""
    if aim == "away":
        return CrossEntropy(outputs.argmax(1))
    if aim == "worst":
        return TargetedCrossEntropy(outputs.argmin(1))
    return DecisionCost(outputs.amax(1, keepdim=True) - outputs)


def as_shown(x: Tensor, true: Tensor, eps: float) -> Tensor:
    """What a policy saw, `x`, in the type of the true observations.

    Whole numbers become the nearest ones within `eps` of the true ones. Bytes were seen divided by
    255, and `eps` is a share of that.

    >>> as_shown(torch.tensor([0.5]), torch.tensor([120], dtype=torch.uint8), 3 / 255)
    tensor([123], dtype=torch.uint8)
    >>> as_shown(torch.tensor([5.7, 4.4]), torch.tensor([5, 5]), eps=1.5)
    tensor([6, 4])
    """
    if true.is_floating_point():
        return x.to(true.dtype)
    unit = LEVELS if true.dtype == torch.uint8 else 1
    lowest, highest = _range(true.dtype)
    most = min(int(eps * unit + _ROUNDING), highest)
    moved = (unit * (x - true.to(x) / unit)).round().clamp(-most, most).long()
    return (true.long() + moved).clamp(lowest, highest).to(true.dtype)


def _range(dtype: torch.dtype) -> tuple[int, int]:
    """The smallest and the largest number of a type, as far as int64 has them."""
    if dtype == torch.bool:
        return 0, 1
    numbers, largest = torch.iinfo(dtype), torch.iinfo(torch.int64).max
    return numbers.min, min(numbers.max, largest)
