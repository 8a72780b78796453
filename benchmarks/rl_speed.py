"""Where the time of a training step goes, and what `reproduce rl` gains over Stable-Baselines3.

Agents take blocks of steps in turns, so that a busy machine is busy for all; a speed is that of the
median block, in seconds of the processor. The time of a part leaves out the parts within it. The
floor is what the matrix products of a step take if nothing else is done.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from report import RESULTS, markdown, save
from stable_baselines3 import DDPG, TD3
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.td3 import td3

from facetwalk.experiments.rl.lean_policy import LeanPolicy

ENV, WIDTH, BATCH = "HalfCheetah-v5", 256, 256
KINDS = {"td3": TD3, "ddpg": DDPG}
OWN, FUSED, LEAN = "Stable-Baselines3", "fused Adam", "fused Adam, lean policy"
VARIANTS: dict[str, tuple[Any, dict[str, Any]]] = {
    OWN: ("MlpPolicy", {}),
    FUSED: ("MlpPolicy", {"fused": True}),
    LEAN: (LeanPolicy, {"fused": True}),
}
STARTS = 300


def agent(algo: str, variant: str) -> Any:
    """One that has begun to learn."""
    policy, optimizer = VARIANTS[variant]
    env = make_vec_env(ENV, seed=0)
    shape = env.action_space.shape
    made = KINDS[algo](
        policy,
        env,
        seed=0,
        buffer_size=100_000,
        learning_starts=STARTS,
        batch_size=BATCH,
        action_noise=NormalActionNoise(np.zeros(shape), np.full(shape, 0.1)),
        policy_kwargs={"net_arch": [WIDTH, WIDTH], "optimizer_kwargs": optimizer},
        device="cpu",
    )
    return made.learn(STARTS + 50)


def milliseconds(agents: dict[str, Any], blocks: int, block: int) -> dict[str, float]:
    """Of one step of each agent."""
    taken: dict[str, list[float]] = {name: [] for name in agents}
    for _ in range(blocks):
        for name, each in agents.items():
            began = time.process_time()
            each.learn(block, reset_num_timesteps=False)
            taken[name].append(1000 * (time.process_time() - began) / block)
    return {name: statistics.median(times) for name, times in taken.items()}


class Stopwatch:
    """Times of parts, each without the parts within it."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._within = [0.0]

    def timed(self, part: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            began = time.process_time()
            self._within.append(0.0)
            try:
                return work(*args, **kwargs)
            finally:
                whole = time.process_time() - began
                alone = whole - self._within.pop()
                self._within[-1] += whole
                self.seconds[part] = self.seconds.get(part, 0.0) + alone

        return run


def parts(algo: str, variant: str, steps: int) -> dict[str, float]:
    """Milliseconds of each part of a step."""
    made, watch = agent(algo, variant), Stopwatch()
    networks = (made.actor, made.actor_target, made.critic, made.critic_target)
    methods = [
        ("environment", made.env, "step"),
        ("prediction for one state", made, "predict"),
        ("switching modes of layers", made.policy, "set_training_mode"),
        ("sampling of the buffer", made.replay_buffer, "sample"),
        *(("forward passes", network, "forward") for network in networks),
        ("forward passes", made.critic, "q1_forward"),
        ("backward passes", torch.Tensor, "backward"),
        ("Adam", made.actor.optimizer, "step"),
        ("Adam", made.critic.optimizer, "step"),
        ("target networks", td3, "polyak_update"),
    ]
    before = [(owner, name, getattr(owner, name)) for _, owner, name in methods]
    for part, owner, name in methods:
        setattr(owner, name, watch.timed(part, getattr(owner, name)))
    watch.timed("the rest", made.learn)(steps, reset_num_timesteps=False)
    for owner, name, work in before:
        setattr(owner, name, work)
    return {part: 1000 * seconds / steps for part, seconds in watch.seconds.items()}


def products(algo: str) -> Iterator[tuple[float, tuple[int, int, int]]]:
    """The matrix products of a step as (how often, sizes), without gradients that nobody uses."""
    env = make_vec_env(ENV)
    (actions,), (states,) = env.action_space.shape, env.observation_space.shape
    actor = [(states, WIDTH), (WIDTH, WIDTH), (WIDTH, actions)]
    critic = [(states + actions, WIDTH), (WIDTH, WIDTH), (WIDTH, 1)]
    critics, share = (2, 0.5) if algo == "td3" else (1, 1.0)

    forward = [(actor, 1 + share), (critic, 2 * critics + share)]
    to_inputs = [(critic[1:], critics), (critic, share), (actor[1:], share)]
    to_weights = [(critic, critics), (actor, share)]
    for layers, often in forward:
        yield from ((often, (BATCH, before, after)) for before, after in layers)
    for layers, often in to_inputs:
        yield from ((often, (BATCH, after, before)) for before, after in layers)
    for layers, often in to_weights:
        yield from ((often, (after, BATCH, before)) for before, after in layers)


def floor(algo: str) -> tuple[float, float]:
    """Milliseconds and GFLOP of the matrix products of a step."""
    total = flops = 0.0
    for often, (rows, inner, columns) in products(algo):
        left, right = torch.randn(rows, inner), torch.randn(inner, columns)
        taken = []
        for _ in range(100):
            began = time.perf_counter()
            left @ right
            taken.append(time.perf_counter() - began)
        total += often * statistics.median(taken)
        flops += often * 2 * rows * inner * columns
    return 1000 * total, flops / 1e9


def evaluation(made: Any, episodes: int, at_once: int) -> float:
    """Seconds of the processor for an evaluation."""
    env = make_vec_env(ENV, at_once, seed=1)
    began = time.process_time()
    evaluate_policy(made, env, episodes)
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=15)
    parser.add_argument("--block", type=int, default=100, help="Steps of a block.")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    speeds, found, floors = {}, {}, {}
    for algo in KINDS:
        agents = {variant: agent(algo, variant) for variant in VARIANTS}
        speeds[algo] = milliseconds(agents, arguments.blocks, arguments.block)
        steps = arguments.blocks * arguments.block // 3
        found[algo] = {variant: parts(algo, variant, steps) for variant in (OWN, LEAN)}
        floors[algo] = floor(algo)
    alone, together = (evaluation(agents[LEAN], 10, at_once) for at_once in (1, 10))

    rows = [
        [f"{algo}: {variant}", f"{taken:.2f}", f"{1000 / taken:.0f}", f"{times[OWN] / taken:.2f}"]
        for algo, times in speeds.items()
        for variant, taken in times.items()
    ]
    page = markdown(["", "ms a step", "steps a second", "gain"], rows)
    columns = [(algo, variant) for algo in KINDS for variant in (OWN, LEAN)]
    names = sorted(found["td3"][OWN], key=lambda part: -found["td3"][OWN][part])
    rows = [
        [part, *(f"{found[algo][variant].get(part, 0.0):.2f}" for algo, variant in columns)]
        for part in names
    ]
    rows.append(["all", *(f"{sum(found[a][v].values()):.2f}" for a, v in columns)])
    page += "\n\nMilliseconds of each part of a step:\n\n"
    page += markdown(["part", *(f"{algo}: {variant}" for algo, variant in columns)], rows)
    page += "\n\n" + "\n".join(
        f"- {algo}: the matrix products of a step alone take {taken:.2f} ms, "
        f"{flops / taken * 1000:.0f} GFLOP a second."
        for algo, (taken, flops) in floors.items()
    )
    page += (
        f"\n- An evaluation of 10 episodes takes {alone:.1f} s one after the other, {together:.1f} "
        f"side by side: {alone / together:.1f} times less."
    )
    data = {
        "ms_per_step": speeds,
        "parts_ms": found,
        "floor_ms_and_gflop": floors,
        "evaluation_s": {"one after the other": alone, "side by side": together},
    }
    save("rl_speed", f"Steps of training, {ENV}, one core", page, data, "cpu", arguments.out)


if __name__ == "__main__":
    main()
