"""Environments as an attack on a policy shows them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from facetwalk.control.adversary import Adversary
from facetwalk.control.environments import kind_of
from facetwalk.control.perturbing import Aim
from facetwalk.solvers import Auto, Method
from facetwalk.spaces import Bounds

_WRAPPERS = {
    "gym3": "attacked_gym3.AttackedGym3",
    "VecEnv": "attacked_vec_env.AttackedVecEnv",
    "VectorEnv": "attacked_vector_env.AttackedVectorEnv",
    "Env": "attacked_gymnasium_env.AttackedEnv",
}
"""Each imports the library whose environments it wraps."""


def attack_policy(
    policy: Any,
    env: Any,
    eps: float = 3 / 255,
    *,
    solver: Method | Auto | None = None,
    bounds: Bounds | None = None,
    aim: Aim = "away",
) -> Any:
    """An environment as an attack on `policy` shows it.

    Who acts in it sees perturbed observations only, of the type of the true ones: whole numbers,
    bytes among them, are rounded to whole numbers within `eps`. All else is as before, and
    `report()` tells the returns of episodes that are over, the share of actions that changed and
    the time of a step.

    Args:
        env: a `VecEnv` of Stable-Baselines3, an `Env` or a `VectorEnv` of gymnasium, or an
            environment of gym3 such as Procgen's; what is returned is one of the same kind.
        policy, eps, solver, bounds, aim: see `perturbed`.

    >>> import gymnasium, torch
    >>> policy = torch.nn.Linear(4, 2).eval()
    >>> env = attack_policy(policy, gymnasium.make("CartPole-v1"), 0.1, solver=Auto(evaluations=5))
    >>> env.reset(seed=0)[0].shape
    (4,)
    """
    kind = kind_of(env)
    module, name = _WRAPPERS[kind].split(".")
    count = 1 if kind == "Env" else env.num if kind == "gym3" else env.num_envs
    adversary = Adversary(policy, count, eps, solver=solver, bounds=bounds, aim=aim)
    return getattr(import_module(f"facetwalk.control.{module}"), name)(env, adversary)
