"""Episodes of a policy that sees its environment as it is, or attacked."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from facetwalk.control.environments import as_stepped
from facetwalk.control.perturbing import Aim, Perturbed, perturbed, require_attack
from facetwalk.control.policies import as_seen, logits_at, logits_of
from facetwalk.recordings import Recordings
from facetwalk.solvers import Auto, Method
from facetwalk.spaces import Bounds
from facetwalk.types import whole_number

_NORMAL = 1.96
"""Standard errors to each side of a mean that hold 95 % of a normal distribution."""


@dataclass(frozen=True)
class Episodes:
    """What became of some episodes."""

    returns: np.ndarray
    """Sums of rewards, one an episode, `(E,)`."""
    lengths: np.ndarray
    """Steps, `(E,)`."""
    flipped: float
    """Share of decisions in which an attack changed the most likely action."""
    seconds_per_step: float
    """Of each environment: the attack and the policy, without the environment itself."""

    @property
    def mean(self) -> float:
        """The mean return."""
        return float(self.returns.mean())

    @property
    def half_width(self) -> float:
        """The mean return lies within so much of `mean` with 95 % confidence.

        >>> round(Episodes(np.array([1.0, 3.0]), np.array([9, 9]), 0.0, 0.0).half_width, 2)
        1.96
        """
        if len(self.returns) < 2:
            return math.inf
        return _NORMAL * float(self.returns.std(ddof=1)) / math.sqrt(len(self.returns))


@dataclass(frozen=True)
class Turn:
    """What a callback sees after each decision; a row for each environment still in play."""

    environments: np.ndarray
    """Their numbers."""
    observations: np.ndarray
    attacked: Perturbed | None
    actions: np.ndarray


def play(
    policy: Any,
    env: Any,
    episodes: int,
    *,
    attack: Method | Auto | None = None,
    eps: float = 3 / 255,
    bounds: Bounds | None = None,
    aim: Aim = "away",
    deterministic: bool = True,
    seed: int = 0,
    callback: Callable[[Turn], object] | None = None,
) -> Episodes:
    """Let a policy act for some episodes, spread evenly over environments.

    Args:
        policy: see `perturbed`.
        env: environments side by side: a `VecEnv` of Stable-Baselines3, a `VectorEnv` of
            gymnasium, or an environment of gym3 such as Procgen's. They begin again by themselves;
            a step that only does so counts for nothing.
        episodes: how many; each environment plays its share, so short ones count no more.
        attack: the solver that perturbs what the policy sees; none without.
        eps, bounds, aim: see `perturbed`.
        deterministic: whether it takes its most likely action, or draws one by what its logits say.
        seed: of the attack, of actions that are drawn, and of the environments but for those of
            gym3, which are made with one.
        callback: sees each `Turn`.

    >>> import gymnasium, torch
    >>> env = gymnasium.make_vec("CartPole-v1", num_envs=2)
    >>> play(torch.nn.Linear(4, 2).eval(), env, episodes=3).returns.shape
    (3,)
    """
    episodes = whole_number("episodes", episodes, at_least=1)
    if attack is not None:
        require_attack(eps, attack, aim)
    logits, world = logits_of(policy), as_stepped(env)
    left = np.full(world.count, episodes // world.count)
    left[: episodes % world.count] += 1
    returns, lengths = np.zeros(world.count), np.zeros(world.count, dtype=int)
    finished: list[tuple[float, int]] = []
    flips = decisions = 0
    thinking = 0.0
    observations = world.begin(seed)
    actions = np.zeros(world.count, dtype=np.int64)
    recordings = Recordings() if as_seen(observations, logits).is_cuda else None
    lots = np.random.default_rng(seed)

    def decide(seen: np.ndarray, lot: np.ndarray) -> tuple[Tensor, Perturbed | None]:
        x, attacked = as_seen(seen, logits), None
        if attack is not None:
            attacked = perturbed(
                logits,
                seen,
                eps,
                solver=attack,
                bounds=bounds,
                aim=aim,
                seed=seed + decisions,
                recordings=recordings,
            )
            if deterministic:
                return attacked.actions, attacked
            x = attacked.observations
        outputs = logits_at(x, logits)
        return outputs.argmax(1) if deterministic else _drawn(outputs, lot), attacked

    while left.any():
        counts = ~world.beginning
        in_play = np.flatnonzero(counts & (left > 0))
        if len(in_play):
            began, seen = time.perf_counter(), observations[in_play]
            chosen, attacked = decide(seen, lots.random(world.count)[in_play])
            actions[in_play] = chosen.cpu().numpy()
            thinking += time.perf_counter() - began
            decisions += len(in_play)
            flips += 0 if attacked is None else int(attacked.flipped.sum())
            if callback is not None:
                callback(Turn(in_play, seen, attacked, actions[in_play]))
        observations, rewards, over = world.step(actions)
        returns += np.where(counts, rewards, 0.0)
        lengths += counts
        for number in np.flatnonzero(over & (left > 0)):
            finished.append((float(returns[number]), int(lengths[number])))
            left[number] -= 1
        returns[over], lengths[over] = 0.0, 0
    totals, steps = zip(*finished, strict=True)
    return Episodes(np.array(totals), np.array(steps), flips / decisions, thinking / decisions)


def _drawn(logits: Tensor, lot: np.ndarray) -> Tensor:
    """The action that each lot in [0, 1) draws, `(N,)`."""
    upto = logits.double().cpu().softmax(1).cumsum(1)
    drawn = torch.searchsorted(upto, torch.from_numpy(lot)[:, None], right=True)
    return drawn.squeeze(1).clamp_max(logits.shape[1] - 1)
