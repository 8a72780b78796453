"""Policies with discrete actions as networks from observations to logits."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from facetwalk.messages import reason
from facetwalk.models import require_eval
from facetwalk.types import InputError, ModelError

LEVELS = 255
"""The largest entry of an image of bytes; policies see such images divided by it."""

_NUMBERS = ("Box", "MultiBinary")
"""The spaces of gymnasium whose points are numbers, and not names of things."""


class AgentLogits(nn.Module):
    """What the logits of policies of Stable-Baselines3 share."""

    def __init__(self, policy: Any, factor: float) -> None:
        super().__init__()
        self.policy, self.factor = policy, factor

    def check(self, observations: Tensor) -> None:
        """Raise `InputError` unless these are observations of the policy, `(N, *shape)`."""
        shape = self.policy.observation_space.shape
        if not observations.ndim or tuple(observations.shape[1:]) != shape:
            entries = ", ".join(map(str, ("N", *shape)))
            raise InputError(
                f"the policy takes observations of shape ({entries}), and these have shape "
                f"{tuple(observations.shape)}: pass a batch, with the channels of images first, "
                "as the environment agent.get_env() gives it"
            )


class ActorLogits(AgentLogits):
    """The logits of an actor-critic policy of Stable-Baselines3 (PPO, A2C)."""

    def forward(self, x: Tensor) -> Tensor:
        from stable_baselines3.common.policies import BaseModel

        policy = self.policy
        seen = BaseModel.extract_features(policy, self.factor * x, policy.pi_features_extractor)
        return policy.action_net(policy.mlp_extractor.forward_actor(seen))


class ActionValues(AgentLogits):
    """The values of actions that a policy of DQN prefers actions by."""

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
    if policy.observation_space.shape is None:
        raise InputError(
            f"the policy's observations are {policy.observation_space}, and must be one array"
        )
    factor = float(LEVELS) if policy.observation_space.dtype == np.uint8 else 1.0
    if hasattr(policy, "q_net"):
        return ActionValues(policy, factor)
    if hasattr(policy, "action_net") and hasattr(policy, "pi_features_extractor"):
        return ActorLogits(policy, factor)
    raise InputError(f"the logits of a {type(policy).__name__} are not known")


def require_numbers(logits: nn.Module) -> None:
    """Raise `InputError` where an agent's observations are no numbers, which could be moved."""
    if not isinstance(logits, AgentLogits):
        return
    space = logits.policy.observation_space
    if type(space).__name__ not in _NUMBERS:
        raise InputError(
            f"the policy's observations are {space}, and must be numbers ({' or '.join(_NUMBERS)}) "
            "to be moved by an attack"
        )


def as_tensor(observations: Any) -> Tensor:
    """One array of observations `(N, *shape)` as a tensor of its own type."""
    if isinstance(observations, (Mapping, tuple)):
        raise InputError(
            "the observations of a policy must be one array of numbers (N, *shape), and these are "
            f"a {type(observations).__name__}"
        )
    try:
        return torch.as_tensor(observations)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"the observations of a policy must be one array of numbers: {reason(error)}"
        ) from error


def as_seen(observations: Any, logits: nn.Module) -> Tensor:
    """Observations `(N, *shape)` as floats where the network is; bytes are divided by 255.

    >>> as_seen(np.full((1, 2), 51, dtype=np.uint8), nn.Linear(2, 2)).tolist()
    [[0.20000000298023224, 0.20000000298023224]]
    """
    given = as_tensor(observations)
    if isinstance(logits, AgentLogits):
        logits.check(given)
    weight = next(logits.parameters(), torch.empty(0))
    x = given.to(weight.device, weight.dtype)
    return x / LEVELS if given.dtype == torch.uint8 else x


def logits_at(x: Tensor, logits: nn.Module) -> Tensor:
    """The logits `(N, actions)` at observations `(N, *shape)` that `as_seen` gave.

    >>> logits_at(torch.zeros(3, 4), nn.Linear(4, 2)).shape
    torch.Size([3, 2])
    """
    try:
        with torch.no_grad():
            found = logits(x.clone())
    except Exception as error:
        raise ModelError(
            f"the policy fails on observations of shape {tuple(x.shape)}, the first dimension of "
            f"which must be the batch: {reason(error)}"
        ) from error
    if not isinstance(found, Tensor) or found.ndim != 2 or len(found) != len(x):
        kind = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise ModelError(
            "a policy must give logits (N, actions), a row for each observation; for observations "
            f"of shape {tuple(x.shape)} it gave {kind}: for one observation pass observation[None]"
        )
    return found
