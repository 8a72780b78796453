"""Environments of Stable-Baselines3, attacked; importing this needs it."""

from __future__ import annotations

from typing import Any

from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

from facetwalk.control.adversary import Adversary
from facetwalk.control.playing import Episodes


class AttackedVecEnv(VecEnvWrapper):
    """A `VecEnv` through the eyes of an adversary's victim."""

    def __init__(self, env: VecEnv, adversary: Adversary) -> None:
        super().__init__(env)
        self.adversary = adversary

    def reset(self) -> Any:
        self.adversary.forget()
        return self.adversary.show(self.venv.reset())

    def step_wait(self) -> Any:
        observations, rewards, over, infos = self.venv.step_wait()
        self.adversary.note(rewards, over)
        return self.adversary.show(observations), rewards, over, infos

    def report(self) -> Episodes:
        """What became of the episodes that are over, and of all actions."""
        return self.adversary.report()
