"""Environments of several libraries, side by side in batches, stepped in one way."""

from __future__ import annotations

import os
from typing import Any, Protocol

import numpy as np

from facetwalk.types import InputError, MissingExtraError


class Stepped(Protocol):
    """Environments that begin again by themselves."""

    count: int

    def begin(self, seed: int) -> np.ndarray:
        """The first observations, `(count, *shape)`."""
        ...

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Observations, rewards `(count,)`, and which episodes are over, bool `(count,)`."""
        ...


class _VecEnv:
    """Of Stable-Baselines3."""

    def __init__(self, env: Any) -> None:
        self.env, self.count = env, env.num_envs

    def begin(self, seed: int) -> np.ndarray:
        self.env.seed(seed)
        return self.env.reset()

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        observations, rewards, over, _ = self.env.step(actions)
        return observations, rewards, over


class _VectorEnv:
    """Of gymnasium. After an episode one step is spent on beginning again, without a reward."""

    def __init__(self, env: Any) -> None:
        self.env, self.count = env, env.num_envs

    def begin(self, seed: int) -> np.ndarray:
        return self.env.reset(seed=seed)[0]

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        observations, rewards, ended, cut, _ = self.env.step(actions)
        return observations, rewards, np.logical_or(ended, cut)


class _Gym3:
    """Of gym3, with images `rgb`, whose channels are put first. It was seeded when it was made."""

    def __init__(self, env: Any) -> None:
        self.env, self.count = env, env.num

    def begin(self, seed: int) -> np.ndarray:
        return self._images(self.env.observe()[1])

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        self.env.act(actions.astype(np.int32))
        rewards, observations, first = self.env.observe()
        return self._images(observations), rewards, first

    def _images(self, observations: Any) -> np.ndarray:
        return observations["rgb"].transpose(0, 3, 1, 2).copy()


def as_stepped(env: Any) -> Stepped:
    """A `VecEnv` of Stable-Baselines3, a `VectorEnv` of gymnasium or an environment of gym3.

    >>> import gymnasium
    >>> as_stepped(gymnasium.make_vec("CartPole-v1", num_envs=2)).begin(seed=0).shape
    (2, 4)
    """
    if hasattr(env, "observe") and hasattr(env, "act"):
        return _Gym3(env)
    if hasattr(env, "step_wait"):
        return _VecEnv(env)
    if hasattr(env, "num_envs"):
        return _VectorEnv(env)
    raise InputError(
        "env must hold several environments side by side: a VecEnv of Stable-Baselines3, a "
        f"VectorEnv of gymnasium or an environment of gym3; it is a {type(env).__name__}"
    )


def procgen(name: str, count: int, levels: int = 200, seed: int = 0, first: int = 0) -> Any:
    """`count` environments of Procgen (gym3) on `levels` easy levels from `first` on; 0 are all."""
    try:
        from procgen import ProcgenGym3Env  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise MissingExtraError("Procgen", "procgen") from error
    return ProcgenGym3Env(
        num=count,
        env_name=name,
        start_level=first,
        num_levels=levels,
        distribution_mode="easy",
        rand_seed=seed,
        num_threads=min(count, os.cpu_count() or 1),
    )
