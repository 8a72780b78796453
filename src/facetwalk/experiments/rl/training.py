"""One run of training, in a folder from which it goes on after a kill."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from facetwalk.control.refining import TENTH
from facetwalk.messages import reason
from facetwalk.run_folder import RunFolder
from facetwalk.types import InputError, MissingExtraError

PLAIN, PAPER, OURS = "plain", "ADR-GD", "ours"
VARIANTS = (PLAIN, PAPER, OURS)
"""The algorithm as it is; refined as in the paper; refined with a tenth of those gradients."""

_AGENT, _BUFFER = "agent.zip", "buffer.pkl"
_JUDGED_FROM = 10_000
"""The seed of evaluations for run 0: no training has it."""


@dataclass(frozen=True)
class Run:
    """What is trained, and how."""

    env: str
    algo: str
    variant: str
    seed: int
    steps: int
    every: int
    """Steps between two evaluations, after each of which everything is saved."""
    episodes: int
    """Of an evaluation."""
    starts: int
    """Steps of random actions before learning."""
    width: int
    """Neurons of each of two hidden layers."""
    batch: int
    device: str = "cpu"

    @property
    def name(self) -> str:
        return f"{self.env}_{self.algo}_{self.variant}_{self.seed}"


def check_env(name: str) -> None:
    """Refuse an environment that is not there, or whose actions are not vectors."""
    try:
        from gymnasium import make, spaces
    except ImportError as error:
        raise MissingExtraError("training agents", "control") from error
    try:
        with warnings.catch_warnings(action="ignore"):
            env = make(name)
    except Exception as error:
        raise InputError(f"there is no environment {name!r} ({reason(error)})") from error
    env.close()
    if not isinstance(env.action_space, spaces.Box):
        raise InputError(f"{name} has no actions that are vectors: TD3 and DDPG need them")


def train(run: Run, folder: Path) -> Mapping[str, Any]:
    """The learning curve: steps, and mean returns without noise or refinement."""
    torch.set_num_threads(1)
    known = RunFolder(folder / run.name, asdict(run), "evaluations.jsonl", dict)
    if run.steps not in _curve(known)[0]:
        _learn(run, known)
    steps, means = _curve(known)
    return {"steps": steps, "means": means}


def _learn(run: Run, known: RunFolder[dict[str, Any]]) -> None:
    try:
        from stable_baselines3.common.evaluation import evaluate_policy
    except ImportError as error:
        raise MissingExtraError("training agents", "control") from error
    agent, judge = _agent(run, known.folder), _env(run.env, 0, run.episodes)
    while agent.num_timesteps < run.steps:
        agent.learn(run.every, reset_num_timesteps=False)
        judge.seed(_JUDGED_FROM + run.seed)  # the same episodes each time
        returns, _ = evaluate_policy(
            agent, judge, run.episodes, return_episode_rewards=True, warn=False
        )
        known.add([{"step": agent.num_timesteps, "mean": float(np.mean(returns))}])
        _save(agent, known.folder)


def _curve(known: RunFolder[dict[str, Any]]) -> tuple[list[int], list[float]]:
    """Of steps that were evaluated twice, because of a kill between, the later one counts."""
    by_step = {line["step"]: line["mean"] for line in known.lines}
    return sorted(by_step), [by_step[step] for step in sorted(by_step)]


def _env(name: str, seed: int, count: int = 1) -> Any:
    from stable_baselines3.common.env_util import make_vec_env

    return make_vec_env(name, count, seed=seed)


def _agent(run: Run, folder: Path) -> Any:
    """The agent as it was saved last, or a new one."""
    from stable_baselines3 import DDPG, TD3
    from stable_baselines3.common.noise import NormalActionNoise

    from facetwalk.control import RefinedDDPG, RefinedTD3
    from facetwalk.experiments.rl.lean_policy import LeanPolicy

    plain, refined = {"td3": (TD3, RefinedTD3), "ddpg": (DDPG, RefinedDDPG)}[run.algo]
    kind: Any = plain if run.variant == PLAIN else refined
    env = _env(run.env, run.seed)
    if (folder / _AGENT).exists() and (folder / _BUFFER).exists():
        agent = kind.load(folder / _AGENT, env=env, device=run.device)
        agent.load_replay_buffer(folder / _BUFFER)
        return agent
    shape = env.action_space.shape
    more = {} if run.variant != OURS else {"solver": TENTH}
    return kind(
        LeanPolicy,
        env,
        seed=run.seed,
        buffer_size=run.steps,
        learning_starts=run.starts,
        batch_size=run.batch,
        action_noise=NormalActionNoise(np.zeros(shape), np.full(shape, 0.1)),
        policy_kwargs={"net_arch": [run.width] * 2, "optimizer_kwargs": {"fused": True}},
        device=run.device,
        **more,
    )


def _save(agent: Any, folder: Path) -> None:
    """Agent and buffer, each under its name only once it is whole."""
    agent.save(folder / f"new_{_AGENT}")
    agent.save_replay_buffer(folder / f"new_{_BUFFER}")
    for name in (_BUFFER, _AGENT):
        (folder / f"new_{name}").replace(folder / name)
