"""Environments of several libraries, side by side in batches, stepped in one way."""

from __future__ import annotations

import os
import sys
from typing import Any, Literal, Protocol

import numpy as np

from facetwalk.messages import reason
from facetwalk.types import InputError, MissingExtraError, whole_number

_INT32 = 2**31


class Stepped(Protocol):
    """Environments that begin again by themselves."""

    count: int
    beginning: np.ndarray
    """Which environments only begin an episode in the next step, whatever the action, and without
    a reward: bool `(count,)`."""

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
        self.beginning = np.zeros(self.count, dtype=bool)

    def begin(self, seed: int) -> np.ndarray:
        self.env.seed(seed)
        return self.env.reset()

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        observations, rewards, over, _ = self.env.step(actions)
        return observations, rewards, over


class _VectorEnv:
    """Of gymnasium."""

    def __init__(self, env: Any) -> None:
        if _autoreset_mode(env) == "Disabled":
            raise InputError(
                "the environments must begin again by themselves: make them with the "
                "autoreset_mode NEXT_STEP or SAME_STEP"
            )
        self.env, self.count, self.spends_a_step = env, env.num_envs, spends_a_step(env)
        self.beginning = np.zeros(self.count, dtype=bool)

    def begin(self, seed: int) -> np.ndarray:
        self.beginning = np.zeros(self.count, dtype=bool)
        return self.env.reset(seed=seed)[0]

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        observations, rewards, ended, cut, _ = self.env.step(actions)
        over = np.logical_or(ended, cut)
        self.beginning = over & self.spends_a_step
        return observations, rewards, over


class _Gym3:
    """Of gym3, with images `rgb`, whose channels are put first. It was seeded when it was made."""

    def __init__(self, env: Any) -> None:
        self.env, self.count = env, env.num
        self.beginning = np.zeros(self.count, dtype=bool)

    def begin(self, seed: int) -> np.ndarray:
        return self._images(self.env.observe()[1])

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        self.env.act(actions.astype(np.int32))
        rewards, observations, first = self.env.observe()
        return self._images(observations), rewards, first

    def _images(self, observations: Any) -> np.ndarray:
        return observations["rgb"].transpose(0, 3, 1, 2).copy()


def _autoreset_mode(env: Any) -> str:
    """Of a `VectorEnv`; versions before 1.1 name none and spend a step on beginning again."""
    named = (getattr(env, "metadata", None) or {}).get("autoreset_mode", "NextStep")
    return getattr(named, "value", named)


def spends_a_step(env: Any) -> bool:
    """Whether a `VectorEnv` of gymnasium spends a step on beginning an episode again.

    >>> import gymnasium
    >>> spends_a_step(gymnasium.make_vec("CartPole-v1", num_envs=2))
    True
    """
    return _autoreset_mode(env) == "NextStep"


Kind = Literal["VecEnv", "VectorEnv", "Env", "gym3"]
"""Of Stable-Baselines3, twice of gymnasium, and of gym3."""


def kind_of(env: Any) -> Kind:
    """Whose environment it is.

    >>> import gymnasium
    >>> kind_of(gymnasium.make("CartPole-v1"))
    'Env'
    """
    if hasattr(env, "observe") and hasattr(env, "act"):
        return "gym3"
    if hasattr(env, "env_is_wrapped"):
        return "VecEnv"
    if hasattr(env, "num_envs"):
        _check_gymnasium()
        return "VectorEnv"
    if all(hasattr(env, name) for name in ("reset", "step", "observation_space")):
        return "Env"
    raise InputError(
        "env must be a VecEnv of Stable-Baselines3, an environment of gymnasium or one of gym3; "
        f"it is a {type(env).__name__}"
    )


def _check_gymnasium() -> None:
    """Before 1.0 its environments side by side begin again in a way of their own."""
    gymnasium = sys.modules.get("gymnasium")
    if gymnasium is not None and int(gymnasium.__version__.split(".")[0]) < 1:
        raise InputError(
            f"environments of gymnasium {gymnasium.__version__} side by side cannot be used: pip "
            "install 'gymnasium>=1.0', or make a VecEnv of Stable-Baselines3"
        )


def as_stepped(env: Any) -> Stepped:
    """A `VecEnv` of Stable-Baselines3, a `VectorEnv` of gymnasium or an environment of gym3.

    >>> import gymnasium
    >>> as_stepped(gymnasium.make_vec("CartPole-v1", num_envs=2)).begin(seed=0).shape
    (2, 4)
    """
    kind = kind_of(env)
    if kind == "Env":
        raise InputError(
            "env must hold several environments side by side: a VecEnv of Stable-Baselines3, a "
            f"VectorEnv of gymnasium or an environment of gym3; it is a {type(env).__name__}"
        )
    return {"gym3": _Gym3, "VecEnv": _VecEnv, "VectorEnv": _VectorEnv}[kind](env)


def procgen(name: str, count: int, levels: int = 200, seed: int = 0, first: int = 0) -> Any:
    """`count` environments of Procgen (gym3) on `levels` easy levels from `first` on; 0 are all."""
    try:
        from procgen import env  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise MissingExtraError("Procgen", "procgen") from error
    if name not in env.ENV_NAMES:
        raise InputError(f"no game is named {name!r}; there are {', '.join(env.ENV_NAMES)}")
    count = _int32("count", count, at_least=1)
    settings = {
        "start_level": _int32("first", first, at_least=0),
        "num_levels": _int32("levels", levels, at_least=0),
        "distribution_mode": "easy",
        "rand_seed": _int32("seed", seed),
        "num_threads": min(count, os.cpu_count() or 1),
    }
    try:
        return env.ProcgenGym3Env(num=count, env_name=name, **settings)
    except OSError as error:
        raise InputError(
            f"Procgen cannot be loaded ({reason(error)}): install the system's libraries that it "
            "asks for, on Debian libgl1 and libglib2.0-0"
        ) from error


def _int32(name: str, value: int, at_least: int | None = None) -> int:
    """`value`, if Procgen takes it: others may end the interpreter."""
    number = whole_number(name, value, at_least)
    if not -_INT32 <= number < _INT32:
        raise InputError(f"{name} must be below 2^31; it is {number}")
    return number
