"""Small policies and environments with discrete actions."""

import gymnasium
import numpy as np
import torch
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.vec_env import DummyVecEnv
from torch import nn


class Pictures(gymnasium.Env):
    """Random images of bytes; an episode is as long as its first pixel says."""

    observation_space = gymnasium.spaces.Box(0, 255, (36, 36, 1), dtype=np.uint8)
    action_space = gymnasium.spaces.Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = int(self.np_random.integers(2, 6))
        return self._picture(), {}

    def step(self, action):
        self.left -= 1
        return self._picture(), float(action), self.left == 0, False, {}

    def _picture(self):
        return self.np_random.integers(0, 256, self.observation_space.shape, dtype=np.uint8)


class Shown(gymnasium.Env):
    """Points of any space, always the same one."""

    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, space, point=None):
        self.observation_space = space
        self.point = space.sample() if point is None else np.array(point, dtype=space.dtype)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.point, {}

    def step(self, action):
        return self.point, 1.0, False, False, {}


def shown(space, point=None, count=1):
    return DummyVecEnv([lambda: Shown(space, point)] * count)


def ppo(env="CartPole-v1", policy="MlpPolicy", **settings):
    return PPO(policy, env, n_steps=8, batch_size=8, seed=0, policy_kwargs=settings)


def relu_ppo():
    return ppo(activation_fn=nn.ReLU, net_arch=[16, 16])


def dqn():
    return DQN("MlpPolicy", "CartPole-v1", seed=0, policy_kwargs={"net_arch": [16]})


def image_ppo(env):
    return ppo(env, "CnnPolicy")


def linear(weight, bias):
    policy = nn.Linear(*reversed(weight.shape)).double()
    policy.weight.data.copy_(torch.as_tensor(weight))
    policy.bias.data.copy_(torch.as_tensor(bias))
    return policy.eval()
