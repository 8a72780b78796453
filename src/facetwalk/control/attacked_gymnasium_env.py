"""One environment of gymnasium, attacked; importing this needs it."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from facetwalk.control.adversary import Adversary
from facetwalk.control.playing import Episodes


class AttackedEnv(gymnasium.Wrapper):
    """One environment through the eyes of an adversary's victim."""

    def __init__(self, env: gymnasium.Env, adversary: Adversary) -> None:
        super().__init__(env)
        self.adversary = adversary

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(**options)
        self.adversary.forget()
        return self._shown(observation), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, ended, cut, info = self.env.step(action)
        self.adversary.note(np.array([reward]), np.array([ended or cut]))
        return self._shown(observation), reward, ended, cut, info

    def report(self) -> Episodes:
        """What became of the episodes that are over, and of all actions."""
        return self.adversary.report()

    def _shown(self, observation: Any) -> Any:
        return self.adversary.show(np.asarray(observation)[None])[0]
