"""Bar 2 of attacks on policies: games of FruitBot side by side, each step of each attacked.

The policy is a published one (`procgen/` in the data folder). A step is the attack on what all
games show, the policy's answers, and the games' own step; an environment-step is one of one game.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from report import RESULTS, data_folder, markdown, save

from facetwalk import Recordings
from facetwalk.control import perturbed
from facetwalk.control.environments import as_stepped, procgen
from facetwalk.control.perturbing import Aim
from facetwalk.experiments.policies.planning import ATTACKS
from facetwalk.zoo import impala_policy

EPS = 3 / 255


def seconds(policy: Any, solver: Any, aim: Aim, envs: int, steps: int, warm_up: int) -> np.ndarray:
    """Of each step of all games `(steps, 2)`: those of a clock, and of the processor."""
    env = procgen("fruitbot", envs)
    world = as_stepped(env)
    recordings = Recordings() if next(policy.parameters()).is_cuda else None  # as `play` does
    seen, taken = world.begin(0), []
    for step in range(warm_up + steps):
        began = np.array([time.perf_counter(), time.process_time()])
        found = perturbed(
            policy, seen, EPS, solver=solver, aim=aim, seed=step, recordings=recordings
        )
        seen, _, _ = world.step(found.actions.cpu().numpy())
        taken.append(np.array([time.perf_counter(), time.process_time()]) - began)
    env.close()
    return np.array(taken[warm_up:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--evaluations", type=int, default=100, help="Gradients a step.")
    parser.add_argument("--steps", type=int, default=3, help="Timed ones of each attack.")
    parser.add_argument("--policy", type=Path, default=data_folder() / "procgen/FruitBot_ppo.pt")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    policy = impala_policy(arguments.policy).to(arguments.device)
    warm_up = 2 if arguments.device == "cuda" else 0
    rows, data = [], []
    for name, attack in ATTACKS.items():
        solver = attack.solver(EPS, arguments.evaluations)
        taken = seconds(policy, solver, attack.aim, arguments.envs, arguments.steps, warm_up)
        clock, processor = np.median(taken, 0)
        evaluations = 1 if name == "FGSM" else arguments.evaluations
        numbers = (clock, processor, 1 / clock, arguments.envs / clock)
        rows.append([name, evaluations, *(f"{number:.3g}" for number in numbers)])
        data.append({"attack": name, "evaluations": evaluations, "seconds": taken.tolist()})
    head = ["attack", "gradients a step", "s a step", "of the processor"]
    head += ["steps a second", "environment-steps a second"]
    title = f"Attacks on {arguments.envs} games of FruitBot side by side, {arguments.policy.stem}"
    name = f"policies_speed_{arguments.device}"
    result = {"envs": arguments.envs, "attacks": data}
    save(name, title, markdown(head, rows), result, arguments.device, arguments.out)


if __name__ == "__main__":
    main()
