"""Better actions than an actor's own, by its critic (section 6.2 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn

from facetwalk.arguments import budget_of
from facetwalk.control.arguments import require_distance
from facetwalk.control.critics import ActionValue, Judge, action_value, require_judge
from facetwalk.maximize import maximize
from facetwalk.objectives import Output
from facetwalk.problem import Problem
from facetwalk.recordings import Recordings
from facetwalk.solvers import Auto, Method
from facetwalk.spaces import Box

_RECORDED: WeakKeyDictionary[nn.Module, dict[bool, Recordings]] = WeakKeyDictionary()
"""Steps by the critic of an agent and by whether they are compiled, as long as it lives."""

TENTH = Auto(evaluations=20)
"""The default, with a tenth of the gradients of the paper's ADR-GD: one run from the actor's own
action."""


@dataclass(frozen=True)
class Refined:
    """What `refine` found."""

    actions: np.ndarray
    """In the environment's own units and of the shape that `predict` gives."""
    before: np.ndarray
    """What the critic says of the actor's own actions, `(N,)`."""
    after: np.ndarray
    """And of these, `(N,)`; never less."""


def refine(
    model: Any,
    observations: Any,
    *,
    solver: Method | Auto | None = None,
    radius: float | None = None,
    judge: Judge | None = None,
    seed: int = 0,
    compile: bool = False,
) -> Refined:
    """Actions near an agent's own, or anywhere in its box, that its critic likes better.

    Args:
        model: an agent of Stable-Baselines3 with a critic of actions: TD3, DDPG, SAC.
        observations: what `model.predict` takes: one observation, or a batch.
        solver: any of `facetwalk.solvers`; by default `Auto` with 20 gradients.
        radius: how far an action may be from the actor's own in each entry, where 1 is half of
            that entry's range; by default anywhere.
        judge: the `"first"` critic, or the `"minimum"` of all; by default what the actor was
            trained on.
        seed: observation b uses `seed + b`.
        compile: compile the solver's steps: the first call takes seconds and needs a C++ compiler,
            later ones with as many observations take about half as long.

    >>> from stable_baselines3 import DDPG
    >>> agent = DDPG("MlpPolicy", "Pendulum-v1", policy_kwargs={"net_arch": [32]}, seed=0)
    >>> found = refine(agent, np.zeros((5, 3), dtype=np.float32))
    >>> found.actions.shape, bool((found.after >= found.before).all())
    ((5, 1), True)
    """
    critic = action_value(model, observations, judge)
    own, _ = model.predict(observations, deterministic=True)
    steps = recordings_of(model, compile)
    method = TENTH if solver is None else solver
    return refined(model.policy, critic, own, method, radius, seed, steps)


def require_refinement(
    solver: Method | Auto | None, radius: float | None, judge: Judge | None
) -> None:
    """Raise `InputError` for what `refine` would refuse, before there is an agent."""
    budget_of(solver, None)
    _require_radius(radius)
    require_judge(judge)


def _require_radius(radius: float | None) -> None:
    if radius is not None:
        require_distance("radius", radius, finite=False)


def recordings_of(model: Any, compile: bool) -> Recordings:
    """What earlier calls with this agent have recorded."""
    of_critic = _RECORDED.setdefault(model.critic, {})
    return of_critic.setdefault(compile, Recordings(compile))


def refined(
    policy: Any,
    critic: ActionValue,
    own: np.ndarray,
    solver: Method | Auto,
    radius: float | None,
    seed: int,
    recordings: Recordings | None,
) -> Refined:
    """As `refine`, from a policy's `own` actions in the environment's units."""
    shape = policy.action_space.shape
    scaled = torch.as_tensor(policy.scale_action(own), device=critic.features.device)
    start = scaled.reshape(critic.count, -1).to(critic.features.dtype).clamp(-1, 1)
    with torch.no_grad():
        before = critic(start).squeeze(1)
    x, after = climb(critic, start, solver, radius, seed, recordings)
    better = after > before
    found = policy.unscale_action(x.cpu().numpy().reshape(-1, *shape))
    kept = np.where(better.cpu().numpy().reshape(-1, *[1] * len(shape)), found, own)
    after = torch.maximum(before, after)
    return Refined(
        kept.reshape(own.shape).astype(own.dtype), before.cpu().numpy(), after.cpu().numpy()
    )


def climb(
    critic: ActionValue,
    start: Tensor,
    solver: Method | Auto,
    radius: float | None,
    seed: int,
    recordings: Recordings | None,
) -> tuple[Tensor, Tensor]:
    """Actions `(N, actions)` in [-1, 1], and their values `(N,)`, from those at `start`."""
    _require_radius(radius)
    reach = 2.0 if radius is None else radius
    low, high = (start - reach).clamp(-1, 1), (start + reach).clamp(-1, 1)
    problem = Problem(critic, Output(0), Box(low, high, shape=start.shape[1:]))
    result = maximize(problem, solver=solver, x0=start, seed=seed, recordings=recordings)
    return result.x, result.value
