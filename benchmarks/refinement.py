"""What refining actions by a critic costs, and what the critic gains by it.

Agents: a TD3 agent trained shortly on Pendulum-v1; a 256 x 256 critic of HalfCheetah's size with
random weights; published SAC agents, where their files are (`sb3/` in the data folder). States are
those of episodes that the agents play. A gain is the first critic's value of the refined action
minus that of the actor's own, and the best known is the best of all methods and of a search with
2000 gradients. Times are those of the processor, for one state a call, once its steps are recorded
and compiled where they are.
"""

from __future__ import annotations

import argparse
import io
import statistics
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from report import RESULTS, data_folder, markdown, save
from stable_baselines3 import SAC, TD3

from facetwalk.control import refine
from facetwalk.control.critics import action_value
from facetwalk.control.refining import TENTH, refined
from facetwalk.solvers import AdrGd, Auto, Method

WIDE = {"net_arch": [256, 256]}
METHODS: dict[str, Method | Auto] = {
    "ADR-GD, paper": AdrGd.for_experiment("td3"),
    "ours": TENTH,
    "ours, 200": Auto(evaluations=200),
}
GRADIENTS = {
    "ADR-GD, paper": 200,
    "ours": 20,
    "ours, 200": 200,
}
BEST = Auto(evaluations=2000)
STEPS = ["plain", "recorded", "compiled"]


def agents() -> Iterator[tuple[str, Any]]:
    pendulum = TD3("MlpPolicy", "Pendulum-v1", policy_kwargs=dict(WIDE), seed=0)
    yield "TD3, Pendulum-v1, 1500 steps", pendulum.learn(1500)
    yield "HalfCheetah-v5, random weights", _blank(TD3, "HalfCheetah-v5")
    for task in ("HalfCheetah", "Walker2d"):
        path = data_folder() / "sb3" / f"sac_{task}-v3.zip"
        if path.exists():
            agent = _blank(SAC, f"{task}-v5")
            with zipfile.ZipFile(path) as archive:
                weights = torch.load(
                    io.BytesIO(archive.read("policy.pth")), "cpu", weights_only=True
                )
            agent.policy.load_state_dict(weights)
            yield f"SAC, {task}, published", agent


def _blank(kind: type, env: str) -> Any:
    return kind("MlpPolicy", env, policy_kwargs=dict(WIDE), seed=0, buffer_size=1)


def states(agent: Any, count: int) -> np.ndarray:
    """Every fifth state of the agent's own play."""
    env, seen = agent.get_env(), []
    env.seed(2)  # with seeds 0 and 1 the default's settings were chosen
    now = env.reset()
    for step in range(5 * count):
        if step % 5 == 0:
            seen.append(now[0])
        now, *_ = env.step(agent.predict(now, deterministic=True)[0])
    return np.array(seen)


def refine_once(agent: Any, state: np.ndarray, solver: Method | Auto, steps: str) -> None:
    if steps == "plain":
        critic = action_value(agent, state, "first")
        own, _ = agent.predict(state, deterministic=True)
        refined(agent.policy, critic, own, solver, None, 0, None)
    else:
        refine(agent, state, solver=solver, judge="first", compile=steps == "compiled")


def milliseconds(agent: Any, seen: np.ndarray, solver: Method | Auto) -> dict[str, float]:
    """Of one call for one state with each kind of steps, which take turns: medians of some."""
    taken: dict[str, list[float]] = {steps: [] for steps in STEPS}
    for state in [seen[0], seen[0], *seen[:11]]:
        for steps in STEPS:
            began = time.process_time()
            refine_once(agent, state, solver, steps)
            taken[steps].append(1000 * (time.process_time() - began))
    return {steps: statistics.median(each[2:]) for steps, each in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=64)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    rows, data = [], []
    for name, agent in agents():
        seen = states(agent, arguments.states)
        found = {
            each: refine(agent, seen, solver=solver, judge="first")
            for each, solver in {**METHODS, "best": BEST}.items()
        }
        best = np.max([each.after - each.before for each in found.values()], 0)
        for method, solver in METHODS.items():
            gain = found[method].after - found[method].before
            taken = milliseconds(agent, seen, solver)
            low, middle, high = np.percentile(gain, [10, 50, 90])
            share = gain.sum() / best.sum()
            spread = f"{low:.3g} / {middle:.3g} / {high:.3g}"
            mean = f"{gain.mean():.4g}"
            times = " / ".join(f"{taken[steps]:.0f}" for steps in STEPS)
            cells = [GRADIENTS[method], times, mean, spread, f"{share:.1%}"]
            rows.append([f"{name}: {method}", *cells])
            data.append({"agent": name, "method": method, "ms": taken, "gain": gain.tolist()})
    table = markdown(
        [
            "agent: method",
            "gradients",
            f"ms, {' / '.join(STEPS)}",
            "mean gain",
            "10 / 50 / 90 %",
            "of the best known",
        ],
        rows,
    )
    title = f"Actions refined by a critic, {arguments.states} states"
    save("refinement", title, table, data, "cpu", arguments.out)


if __name__ == "__main__":
    main()
