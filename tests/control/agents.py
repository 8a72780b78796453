"""Small agents of Stable-Baselines3, with random weights or shortly trained."""

import gymnasium
import numpy as np
from stable_baselines3 import DDPG, SAC, TD3

ALGORITHMS = {"td3": TD3, "ddpg": DDPG, "sac": SAC}


def small():
    """Settings of small networks; new ones, because agents write into them."""
    return {"net_arch": [32, 32]}


class WideBox(gymnasium.Env):
    """Three actions with ranges of different sizes, of which none is symmetric."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,))
    action_space = gymnasium.spaces.Box(
        np.array([-1.0, 0.0, 10.0], dtype=np.float32), np.array([3.0, 0.5, 50.0], dtype=np.float32)
    )

    def __init__(self):
        self.seen = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self._state(), {}

    def step(self, action):
        self.seen.append(action)
        return self._state(), float(action.sum()), False, len(self.seen) > 50, {}

    def _state(self):
        return self.np_random.uniform(-1, 1, 2).astype(np.float32)


def agent(name, steps=0, env="Pendulum-v1", **settings):
    settings = {"policy_kwargs": small(), "learning_starts": 40, "batch_size": 32, **settings}
    made = ALGORITHMS[name]("MlpPolicy", env, seed=0, buffer_size=1000, **settings)
    return made.learn(steps) if steps else made


def observations(count, size=3, seed=0):
    return np.random.default_rng(seed).normal(size=(count, size)).astype(np.float32)
