"""Reinforcement learning: better actions by an agent's critic, and attacks on its policy.

refine                    better actions than those of any trained agent (TD3, DDPG, SAC)
RefinedTD3, RefinedDDPG   Stable-Baselines3's algorithms with refined exploitation
perturbed                 observations at which a policy acts otherwise
play                      episodes of a policy, attacked or not
attack_policy             an environment whose observations are attacked

Importing this needs no extra; `RefinedTD3` and `RefinedDDPG` need `control`.
"""

from typing import TYPE_CHECKING, Any

from facetwalk.control.attacked_env import attack_policy
from facetwalk.control.perturbing import Perturbed, perturbed
from facetwalk.control.playing import Episodes, Turn, play
from facetwalk.control.refining import Refined, refine

if TYPE_CHECKING:
    from facetwalk.control.refined_agents import RefinedDDPG, RefinedTD3

__all__ = [
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


def __getattr__(name: str) -> Any:
    if name not in ("RefinedDDPG", "RefinedTD3"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from facetwalk.control import refined_agents

    return getattr(refined_agents, name)
