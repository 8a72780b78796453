"""Games of gym3 as Stable-Baselines3 steps environments; importing this needs the extra."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from stable_baselines3.common.vec_env import VecEnv


class Gym3VecEnv(VecEnv):
    """Games with images `rgb`, seen with channels first; the bytes stay where gym3 has put them."""

    def __init__(self, games: Any) -> None:
        self.games = games
        shape = self._images(games.observe()[1]).shape[1:]
        space = Box(0, 255, shape, dtype=np.uint8)
        super().__init__(games.num, space, Discrete(games.ac_space.eltype.n))

    def _images(self, observations: Any) -> np.ndarray:
        return observations["rgb"].transpose(0, 3, 1, 2)

    def reset(self) -> np.ndarray:
        """What is seen now: games of gym3 begin again by themselves only."""
        return self._images(self.games.observe()[1])

    def step_async(self, actions: np.ndarray) -> None:
        self.games.act(actions.astype(np.int32))

    def step_wait(self) -> Any:
        rewards, observations, first = self.games.observe()
        return self._images(observations), rewards, first, [{} for _ in range(self.num_envs)]

    def close(self) -> None:
        self.games.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self.games, attr_name, None)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError("games of gym3 have no attributes of their own")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        raise NotImplementedError("games of gym3 have no methods of their own")

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs
