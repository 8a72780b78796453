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
    value_weight: float = 0.25
    """Of the mean square by which values are wrong. Cobbe et al. take half of half of it."""
    cooling: float = 0.0
    """The share of the steps, at the end, in which learning rate and entropy fall to zero: a policy
    that has few of them is surer then of its most likely action."""
    precision: Literal["full", "bf16"] = "bf16"
    """Of convolutions and of the layer above them."""

    def __post_init__(self) -> None:
        for name in ("levels", "steps", "envs", "rollout", "minibatches", "epochs"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1; it is {getattr(self, name)}")
        if not 0 <= self.cooling <= 1:
            raise InputError(f"cooling must be a share in [0, 1]; it is {self.cooling}")
        for name in ("envs", "minibatches"):
            if self.rollout % getattr(self, name):
                raise InputError(
                    f"the rollout of {self.rollout} steps cannot be divided evenly among "
                    f"{getattr(self, name)} {name}: choose another number"
                )

        if self.steps < self.rollout:
            raise InputError(
                f"steps must be at least those of a rollout, {self.rollout}, and they are "
                f"{self.steps}: ask for more, or for a shorter rollout"
            )

    def warmth(self, steps: int) -> float:
        """What is left of learning rate and entropy after so many steps.

        >>> recipe = PolicyRecipe(game="coinrun", steps=100_000, cooling=0.5)
        >>> recipe.warmth(50_000), recipe.warmth(75_000)
        (1.0, 0.5)
        """
        left = max(0, self.steps - steps)
        return min(1.0, left / (self.cooling * self.steps)) if self.cooling else 1.0

    @property
    def steps_between_updates(self) -> int:
        """Of each game."""
        return self.rollout // self.envs
