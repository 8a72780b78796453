"""Policies with discrete actions as networks from observations to logits."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from facetwalk.models import require_eval
from facetwalk.types import InputError

LEVELS = 255
"""The largest entry of an image of bytes; policies see such images divided by it."""


class ActorLogits(nn.Module):
    """The logits of an actor-critic policy of Stable-Baselines3 (PPO, A2C)."""

    def __init__(self, policy: Any, factor: float) -> None:
        super().__init__()
        self.policy, self.factor = policy, factor

    def forward(self, x: Tensor) -> Tensor:
        from stable_baselines3.common.policies import BaseModel

        policy = self.policy
        seen = BaseModel.extract_features(policy, self.factor * x, policy.pi_features_extractor)
        return policy.action_net(policy.mlp_extractor.forward_actor(seen))


class ActionValues(nn.Module):
    """The values of actions that a policy of DQN prefers actions by."""

    def __init__(self, policy: Any, factor: float) -> None:
        super().__init__()
        self.policy, self.factor = policy, factor

    def forward(self, x: Tensor) -> Tensor:
        return self.policy.q_net(self.factor * x)


def logits_of(policy: Any) -> nn.Module:
    """A network from observations `(N, *shape)` to a logit for each action, in eval mode.

    `policy` is an agent or a policy of Stable-Baselines3 with discrete actions, or a module in eval
    mode that is such a network itself. Images of bytes are seen divided by 255.

    >>> logits_of(nn.Linear(4, 2).eval())(torch.zeros(3, 4)).shape
    torch.Size([3, 2])
    """
    if not isinstance(policy, nn.Module):
        policy = getattr(policy, "policy", policy)
    if not isinstance(policy, nn.Module):
        raise InputError(
            "a policy must be an agent of Stable-Baselines3 or a torch.nn.Module from "
            f"observations to logits; it is a {type(policy).__name__}"
        )
    if _is_from_sb3(policy):
        return _logits_of_sb3(policy).eval()  # as `predict` of Stable-Baselines3 does
    require_eval(policy)
    return policy


def _is_from_sb3(policy: nn.Module) -> bool:
    known = sys.modules.get("stable_baselines3.common.policies")
    return known is not None and isinstance(policy, known.BasePolicy)


def _logits_of_sb3(policy: Any) -> nn.Module:
    if type(policy.action_space).__name__ != "Discrete":
        raise InputError(
            f"the policy's actions are {policy.action_space}, and must be Discrete to be attacked"
        )
    factor = float(LEVELS) if policy.observation_space.dtype == np.uint8 else 1.0
    if hasattr(policy, "q_net"):
        return ActionValues(policy, factor)
    if hasattr(policy, "action_net") and hasattr(policy, "pi_features_extractor"):
        return ActorLogits(policy, factor)
    raise InputError(f"the logits of a {type(policy).__name__} are not known")


def as_seen(observations: Any, logits: nn.Module) -> Tensor:
    """Observations `(N, *shape)` as floats where the network is; bytes are divided by 255.

    >>> as_seen(np.full((1, 2), 51, dtype=np.uint8), nn.Linear(2, 2)).tolist()
    [[0.20000000298023224, 0.20000000298023224]]
    """
    given = torch.as_tensor(observations)
    weight = next(logits.parameters(), torch.empty(0))
    x = given.to(weight.device, weight.dtype)
    return x / LEVELS if given.dtype == torch.uint8 else x
