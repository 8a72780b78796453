"""A vectorised environment whose observations are attacked; importing this needs the extra."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch

from facetwalk.control.perturbing import Aim, as_shown, perturbed
from facetwalk.control.playing import Episodes
from facetwalk.control.policies import as_seen, logits_at, logits_of, require_numbers
from facetwalk.solvers import Auto, Method
from facetwalk.spaces import Bounds
from facetwalk.types import InputError, MissingExtraError

try:
    from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper
except ImportError as error:
    raise MissingExtraError("an attacked environment", "control") from error


class AttackedVecEnv(VecEnvWrapper):
    """What `attack_policy` returns: the same environments, seen through an attack."""

    def __init__(self, env: VecEnv, policy: Any, eps: float, **settings: Any) -> None:
        if not isinstance(env, VecEnv):
            raise InputError(
                "env must be a VecEnv of Stable-Baselines3, such as agent.get_env(); "
                f"it is a {type(env).__name__}"
            )
        super().__init__(env)
        self.logits, self.eps, self.settings = logits_of(policy), eps, settings
        require_numbers(self.logits)
        self._returns, self._lengths = np.zeros(self.num_envs), np.zeros(self.num_envs, dtype=int)
        self._finished: list[tuple[float, int]] = []
        self._flips, self._decisions, self._seconds = 0, 0, 0.0

    def reset(self) -> Any:
        self._returns[:], self._lengths[:] = 0.0, 0
        return self._attacked(self.venv.reset())

    def step_wait(self) -> Any:
        observations, rewards, over, infos = self.venv.step_wait()
        self._returns += rewards
        self._lengths += 1
        for number in np.flatnonzero(over):
            self._finished.append((float(self._returns[number]), int(self._lengths[number])))
        self._returns[over], self._lengths[over] = 0.0, 0
        return self._attacked(observations), rewards, over, infos

    def report(self) -> Episodes:
        """What became of the episodes that are over, and of all actions."""
        if not self._finished:
            raise InputError("no episode is over yet: step the environments until one is")
        totals, steps = (np.array(column) for column in zip(*self._finished, strict=True))
        share, seconds = self._flips / self._decisions, self._seconds / self._decisions
        return Episodes(totals, steps, share, seconds)

    def _attacked(self, observations: Any) -> np.ndarray:
        began = time.perf_counter()
        found = perturbed(
            self.logits, observations, self.eps, seed=self._decisions, **self.settings
        )
        shown = as_shown(found.observations.cpu(), torch.from_numpy(observations), self.eps).numpy()
        actions = logits_at(as_seen(shown, self.logits), self.logits).argmax(1)
        self._flips += int((actions != found.own).sum())
        self._decisions += len(shown)
        self._seconds += time.perf_counter() - began
        return shown


def attack_policy(
    policy: Any,
    env: VecEnv,
    eps: float = 3 / 255,
    *,
    solver: Method | Auto | None = None,
    bounds: Bounds | None = None,
    aim: Aim = "away",
) -> AttackedVecEnv:
    """The environments of a `VecEnv`, seen as an attack on `policy` shows them.

    Who acts in them sees perturbed observations only, of the type of the true ones: whole numbers,
    bytes among them, are rounded to whole numbers within `eps`. `report()` tells the returns, the
    share of actions that changed and the time of a step. The arguments are those of `perturbed`.

    >>> from stable_baselines3 import PPO
    >>> agent = PPO("MlpPolicy", "CartPole-v1", n_steps=16, batch_size=16)
    >>> env = attack_policy(agent, agent.get_env(), eps=0.1, solver=Auto(evaluations=5))
    >>> env.reset().shape
    (1, 4)
    """
    return AttackedVecEnv(env, policy, eps, solver=solver, bounds=bounds, aim=aim)
