"""Critics of Stable-Baselines3 as functions of the action alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
import torch
from torch import Tensor, nn

from facetwalk.control.arguments import require_choice
from facetwalk.messages import reason
from facetwalk.models import PerProblemModel
from facetwalk.types import InputError

Judge = Literal["first", "minimum"]
"""Which of several critics says what an action is worth: the first, or all by their minimum."""


class ActionValue(PerProblemModel):
    """Q(s, .) for fixed states: values `(N, 1)` of actions `(N, actions)`, one state a problem.

    `features` `(N, size)` are what the networks see of the states.

    >>> q = nn.Linear(3, 1)
    >>> ActionValue([q], torch.zeros(4, 2))(torch.ones(4, 1)).shape
    torch.Size([4, 1])
    """

    def __init__(self, networks: Sequence[nn.Module], features: Tensor) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks)
        self.features = nn.Buffer(features, persistent=False)
        self.states = len(features)
        self.eval()

    @property
    def count(self) -> int:
        return self.states

    def select(self, rows: Tensor) -> Self:
        return type(self)(list(self.networks), self.features[rows])

    def load(self, other: nn.Module) -> bool:
        if not isinstance(other, ActionValue) or other.features.shape != self.features.shape:
            return False
        self.features.copy_(other.features)
        return True

    def forward(self, actions: Tensor) -> Tensor:
        features, rows = self.features, len(actions)
        if rows != self.states:
            features = features.repeat(-(-rows // self.states), 1)[:rows]
        pairs = torch.cat([features, actions], 1)
        value, *others = (network(pairs) for network in self.networks)
        for other in others:
            value = torch.minimum(value, other)
        return value


def action_value(model: Any, observations: Any, judge: Judge | None = None) -> ActionValue:
    """The critic of an agent (TD3, DDPG, SAC) at observations `(N, *shape)`.

    Without a `judge`, it is what the agent's actor was trained on: the first critic for TD3 and
    DDPG, the minimum of all for agents that explore by an entropy, as SAC does.

    >>> from stable_baselines3 import SAC
    >>> agent = SAC("MlpPolicy", "Pendulum-v1", buffer_size=1)
    >>> critic = action_value(agent, torch.zeros(4, 3).numpy())
    >>> critic.count, len(critic.networks), critic(torch.zeros(4, 1)).shape
    (4, 2, torch.Size([4, 1]))
    """
    critic = getattr(model, "critic", None)
    networks = getattr(critic, "q_networks", None)
    if critic is None or not networks:
        raise InputError(
            "refining actions needs an agent of Stable-Baselines3 with a critic of actions, such "
            f"as TD3, DDPG or SAC; this is a {type(model).__name__}"
        )
    require_judge(judge)
    if judge is None:
        judge = "minimum" if hasattr(model, "ent_coef") else "first"
    seen = _as_tensors(model.policy, observations)
    model.policy.set_training_mode(False)
    with torch.no_grad():
        features = critic.extract_features(seen, critic.features_extractor)
    return ActionValue(networks[:1] if judge == "first" else networks, features)


def require_judge(judge: Judge | None) -> None:
    """Raise `InputError` for what is no `Judge`; None leaves it to the agent."""
    if judge is not None:
        require_choice("judge", judge, Judge)


def _as_tensors(policy: Any, observations: Any) -> Any:
    """Observations as `predict` of Stable-Baselines3 sees them; one alone becomes a batch."""
    parts = observations.values() if isinstance(observations, Mapping) else [observations]
    try:
        some = all(np.asarray(part).size for part in parts)
        seen = policy.obs_to_tensor(observations)[0] if some else None
    except Exception as error:
        raise InputError(
            "observations must be what the agent's predict takes, one or a batch of "
            f"{policy.observation_space}: {reason(error)}"
        ) from error
    if seen is None:
        raise InputError("there is no observation to refine an action at: pass one, or a batch")
    return seen
