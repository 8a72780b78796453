"""The networks of TD3 and DDPG without work that changes nothing; importing this needs the extra.

What they learn is what Stable-Baselines3's own `MlpPolicy` learns, bit for bit.
"""

from __future__ import annotations

from typing import Any

from stable_baselines3.common.policies import ContinuousCritic
from stable_baselines3.td3.policies import TD3Policy
from torch import Tensor


class LeanCritic(ContinuousCritic):
    """A critic that does not ask for gradients of its own weights when it judges an actor."""

    def q1_forward(self, obs: Tensor, actions: Tensor) -> Tensor:
        first = self.q_networks[0]
        first.requires_grad_(False)
        try:
            return super().q1_forward(obs, actions)
        finally:
            first.requires_grad_(True)


class LeanPolicy(TD3Policy):
    """Actor and critic of layers that are the same in training and in evaluation."""

    def make_critic(self, features_extractor: Any = None) -> ContinuousCritic:
        settings = self._update_features_extractor(self.critic_kwargs, features_extractor)
        return LeanCritic(**settings).to(self.device)

    def set_training_mode(self, mode: bool) -> None:
        """Nothing: Stable-Baselines3 asks for another mode three times a step, of every layer."""
