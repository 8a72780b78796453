"""Trains a policy by PPO; importing this needs the extra."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from facetwalk.models import untouched_random_state
from facetwalk.progress import Report
from facetwalk.training.checkpoint import Checkpoint
from facetwalk.training.policies.recipe import PolicyRecipe
from facetwalk.types import InputError, MissingExtraError
from facetwalk.zoo import ImpalaPolicy

try:
    from stable_baselines3 import PPO, __version__
    from stable_baselines3.common.vec_env import VecMonitor, VecNormalize
except ImportError as error:
    raise MissingExtraError("training policies", "control") from error
if tuple(map(int, __version__.split(".")[:2])) < (2, 3):
    raise InputError(
        f"Stable-Baselines3 {__version__} cannot train policies: pip install "
        "'stable-baselines3>=2.3'"
    )

from facetwalk.training.policies.features import ImpalaFeatures, as_impala
from facetwalk.training.policies.games import Gym3VecEnv
from facetwalk.training.policies.rollouts import DeviceRollouts

_SECONDS_BETWEEN_SAVES = 60.0


@dataclass(frozen=True, eq=False)
class TrainedPolicy:
    """A policy in eval mode on the CPU, and how its training went."""

    net: ImpalaPolicy
    steps: int
    """Those that it has learned from."""
    history: list[dict[str, float]]
    """`steps`, and the mean `episode_return` of the last 100 episodes, after each update."""
    seconds: float
    """Of training, without those that an interruption lost."""


class Learner:
    """PPO on games of gym3, which must be able to `get_state` and `set_state`."""

    def __init__(self, recipe: PolicyRecipe, games: Any, device: str) -> None:
        self.recipe, self.games = recipe, games
        self.monitor = VecMonitor(Gym3VecEnv(games))
        self.rewards = VecNormalize(self.monitor, norm_obs=False)
        self.agent = PPO(
            "CnnPolicy",
            self.rewards,
            learning_rate=recipe.learning_rate,
            n_steps=recipe.steps_between_updates,
            batch_size=recipe.rollout // recipe.minibatches,
            n_epochs=recipe.epochs,
            gamma=recipe.gamma,
            gae_lambda=recipe.gae_lambda,
            ent_coef=recipe.entropy,
            clip_range=recipe.clip,
            vf_coef=recipe.value_weight,
            rollout_buffer_class=DeviceRollouts,
            policy_kwargs={
                "features_extractor_class": ImpalaFeatures,
                "features_extractor_kwargs": {"precision": recipe.precision},
                "net_arch": [],
                "ortho_init": False,
                "optimizer_kwargs": {"eps": 1e-5, "fused": True},
            },
            seed=recipe.seed,
            device=device,
        )
        self.history: list[dict[str, float]] = []
        self.seconds = 0.0

    @property
    def steps(self) -> int:
        return self.agent.num_timesteps

    def update(self) -> None:
        """Play one rollout and learn from it. Random numbers depend on the seed and the step."""
        began = time.perf_counter()
        torch.manual_seed(self.recipe.seed + self.steps)
        warmth = self.recipe.warmth(self.steps)
        self.agent.ent_coef = warmth * self.recipe.entropy
        self.agent.lr_schedule = lambda left: warmth * self.recipe.learning_rate
        self.agent.learn(self.recipe.rollout, reset_num_timesteps=False)
        self.seconds += time.perf_counter() - began
        returns = [episode["r"] for episode in self.agent.ep_info_buffer or ()]
        if returns:
            mean = float(np.mean(returns))
            self.history.append({"steps": self.steps, "episode_return": mean})

    def snapshot(self) -> dict[str, Any]:
        """All that decides how it goes on, in what `torch.load(weights_only=True)` reads."""
        scale = self.rewards.ret_rms
        return {
            "policy": self.agent.policy.state_dict(),
            "optimizer": self.agent.policy.optimizer.state_dict(),
            "steps": self.steps,
            "games": [_as_tensor(state) for state in self.games.get_state()],
            "reward_scale": [float(scale.mean), float(scale.var), float(scale.count)],
            "discounted": torch.from_numpy(self.rewards.returns),
            "returns": torch.from_numpy(self.monitor.episode_returns),
            "lengths": torch.from_numpy(self.monitor.episode_lengths),
            "episodes": [
                {"r": float(episode["r"]), "l": int(episode["l"])}
                for episode in self.agent.ep_info_buffer or ()
            ],
            "history": self.history,
            "seconds": self.seconds,
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go on where the snapshot was made."""
        self.games.set_state([state.numpy().tobytes() for state in snapshot["games"]])
        self.agent.learn(0)  # looks at the games
        self.agent.policy.load_state_dict(snapshot["policy"])
        self.agent.policy.optimizer.load_state_dict(snapshot["optimizer"])
        self.agent.num_timesteps = snapshot["steps"]
        scale = self.rewards.ret_rms
        mean, var, scale.count = snapshot["reward_scale"]
        scale.mean, scale.var = np.array(mean), np.array(var)
        self.rewards.returns = snapshot["discounted"].numpy()
        self.monitor.episode_returns = snapshot["returns"].numpy()
        self.monitor.episode_lengths = snapshot["lengths"].numpy()
        assert self.agent.ep_info_buffer is not None
        self.agent.ep_info_buffer.extend(snapshot["episodes"])
        self.history = list(snapshot["history"])
        self.seconds = snapshot["seconds"]


def _as_tensor(content: bytes) -> Tensor:
    return torch.frombuffer(bytearray(content), dtype=torch.uint8)


def train_policy(
    recipe: PolicyRecipe,
    games: Any,
    *,
    device: str = "cpu",
    minutes: float | None = None,
    checkpoint: Checkpoint | None = None,
    report: Report = lambda share, text: None,
) -> TrainedPolicy:
    """A policy trained on `games` of gym3, as many side by side as the recipe says.

    On a CPU the seed decides every weight, whether the training was interrupted or not.

    Args:
        minutes: stop after so long, with fewer steps than the recipe's; `checkpoint` goes on.
        checkpoint: where to go on from, and to save to every minute and at the end.
        report: gets the share that is done, and words.
    """
    began = saved = time.monotonic()
    with untouched_random_state(torch.device(device)):
        learner = Learner(recipe, games, device)
        state = None if checkpoint is None else checkpoint.load()
        if state is not None:
            learner.restore(state)
        while learner.steps < recipe.steps and not _is_late(began, minutes):
            learner.update()
            report(min(1.0, learner.steps / recipe.steps), _words(learner))
            if checkpoint is not None and time.monotonic() - saved > _SECONDS_BETWEEN_SAVES:
                checkpoint.save(learner.snapshot())
                saved = time.monotonic()
        if checkpoint is not None:
            checkpoint.save(learner.snapshot())
        net = as_impala(learner.agent.policy)
    return TrainedPolicy(net, learner.steps, learner.history, learner.seconds)


def _is_late(began: float, minutes: float | None) -> bool:
    return minutes is not None and time.monotonic() - began > 60 * minutes


def _words(learner: Learner) -> str:
    words = f"{learner.steps:,} steps, {learner.steps / learner.seconds:,.0f} a second"
    if learner.history:
        words += f", return {learner.history[-1]['episode_return']:.2f}"
    return words
