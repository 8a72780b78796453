"""Reinforcement learning: better actions by an agent's critic, and attacks on its policy.

refine                    better actions than those of any trained agent (TD3, DDPG, SAC)
RefinedTD3, RefinedDDPG   Stable-Baselines3's algorithms with refined exploitation
perturbed                 observations at which a policy acts otherwise
play                      episodes of a policy, attacked or not
attack_policy             a vectorised environment whose observations are attacked

Importing this needs no extra; `RefinedTD3`, `RefinedDDPG` and `attack_policy` need `control`.
"""

from typing import TYPE_CHECKING, Any

from facetwalk.control.perturbing import Perturbed, perturbed
from facetwalk.control.playing import Episodes, Turn, play
from facetwalk.control.refining import Refined, refine

if TYPE_CHECKING:
    from facetwalk.control.attacked_env import AttackedVecEnv, attack_policy
    from facetwalk.control.refined_agents import RefinedDDPG, RefinedTD3

__all__ = [
    "AttackedVecEnv",
    "Episodes",
    "Perturbed",
    "Refined",
    "RefinedDDPG",
    "RefinedTD3",
    "Turn",
    "attack_policy",
    "perturbed",
    "play",
    "refine",
]

_WITH_EXTRA = {
    "AttackedVecEnv": "attacked_env",
    "attack_policy": "attacked_env",
    "RefinedDDPG": "refined_agents",
    "RefinedTD3": "refined_agents",
}


def __getattr__(name: str) -> Any:
    if name not in _WITH_EXTRA:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_WITH_EXTRA[name]}"), name)
