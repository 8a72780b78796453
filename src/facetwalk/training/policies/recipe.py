"""How one policy is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from facetwalk.types import InputError


@dataclass(frozen=True, kw_only=True)
class PolicyRecipe:
    """A game, and PPO with the settings of Cobbe et al. (2020), "Leveraging procedural generation".

    >>> PolicyRecipe(game="coinrun", envs=256).steps_between_updates
    64
    """

    game: str
    levels: int = 200
    """It is trained on levels 0 to `levels` - 1, easy ones."""
    steps: int = 25_000_000
    """Of all games together; a rollout that was begun is finished."""
    envs: int = 64
    """Games side by side."""
    seed: int = 0
    rollout: int = 16_384
    """Steps of all games together before the network is updated."""
    minibatches: int = 8
    epochs: int = 3
    """How often each step is learned from."""
    learning_rate: float = 5e-4
    gamma: float = 0.999
    gae_lambda: float = 0.95
    entropy: float = 0.01
    clip: float = 0.2
    precision: Literal["full", "bf16"] = "bf16"
    """Of convolutions and of the layer above them."""

    def __post_init__(self) -> None:
        for name in ("levels", "steps", "envs", "rollout", "minibatches", "epochs"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1; it is {getattr(self, name)}")
        for name in ("envs", "minibatches"):
            if self.rollout % getattr(self, name):
                raise InputError(
                    f"the rollout of {self.rollout} steps cannot be divided evenly among "
                    f"{getattr(self, name)} {name}: choose another number"
                )

    @property
    def steps_between_updates(self) -> int:
        """Of each game."""
        return self.rollout // self.envs
