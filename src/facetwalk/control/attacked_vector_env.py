"""Environments of gymnasium side by side, attacked; importing this needs its version 1.0."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv, VectorWrapper

from facetwalk.control.adversary import Adversary
from facetwalk.control.environments import spends_a_step
from facetwalk.control.playing import Episodes


class AttackedVectorEnv(VectorWrapper):
    """Environments side by side through the eyes of an adversary's victim."""

    def __init__(self, env: VectorEnv, adversary: Adversary) -> None:
        super().__init__(env)
        self.adversary, self.beginning = adversary, np.zeros(env.num_envs, dtype=bool)

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        again = (options.get("options") or {}).get("reset_mask", slice(None))
        observations, info = self.env.reset(**options)
        self.beginning[again] = False
        self.adversary.forget(again)
        return self.adversary.show(observations), info

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        observations, rewards, ended, cut, info = self.env.step(actions)
        over = np.logical_or(ended, cut)
        self.adversary.note(rewards, over, ~self.beginning)
        self.beginning = over & spends_a_step(self.env)
        return self.adversary.show(observations), rewards, ended, cut, info

    def report(self) -> Episodes:
        """What became of the episodes that are over, and of all actions."""
        return self.adversary.report()
