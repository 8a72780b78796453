"""The cells of the experiment: every attack on every policy that is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from facetwalk.control import play
from facetwalk.control.environments import procgen
from facetwalk.control.perturbing import BUDGET, Aim
from facetwalk.digests import digest
from facetwalk.experiments.adversarial.attacks import PGD_STEP
from facetwalk.experiments.experiment import Cell, Plan, Record
from facetwalk.solvers import AdrGd, Auto, Fgsm, Method, Sign
from facetwalk.types import InputError
from facetwalk.zoo import ImpalaPolicy, impala_policy

GAMES = {
    "FruitBot": {
        "natural": "FruitBot_ppo.pt",
        "RADIAL": "FruitBot_radial_ppo.pt",
        "adversarial": "AT_PPO_FruitBot.pt",
    },
    "Jumper": {"natural": "Jumper_ppo.pt", "adversarial": "AT_PPO_Jumper.pt"},
    "CoinRun": {"natural": "CoinRun_ppo.pt", "RADIAL": "CoinRun_radial_ppo.pt"},
}
"""Published policies of each game by how they were trained."""

EPS = (3, 5)
"""How far a pixel may move, of 255."""

NONE, OURS = "none", "ours, costly"


@dataclass(frozen=True)
class Attack:
    """What perturbs observations."""

    solver: Callable[[float, int], Method | Auto]
    """By how far a pixel may move, and the gradients of a step of the game."""
    aim: Aim = "away"


def _pgd(eps: float, budget: int) -> Sign:
    return Sign(steps=budget, step_size=PGD_STEP / eps, decay="constant")


def _adr_gd(eps: float, budget: int) -> AdrGd:
    paper = AdrGd.for_experiment("fruitbot")
    return replace(paper, steps=budget // paper.gradients_per_step)


def _ours(eps: float, budget: int) -> Auto:
    return Auto(evaluations=budget)


ATTACKS = {
    "FGSM": Attack(lambda eps, budget: Fgsm()),
    "PGD": Attack(_pgd),
    "ADR-GD": Attack(_adr_gd),
    "ours": Attack(_ours),
    "PGD, costly": Attack(_pgd, "costly"),
    OURS: Attack(_ours, "costly"),
}
"""All but the costly ones maximise what the paper does, the cross-entropy."""


@dataclass(frozen=True)
class Request:
    """What is asked for."""

    nets: Path | None = None
    """Folder of published policies."""
    episodes: int = 100
    parallel: int = 50
    """Games side by side."""
    device: str = "cpu"
    budget: int = BUDGET
    """Gradients of each attack at each step; by default those of the paper's ADR-GD."""
    only: Sequence[str] = ()
    """Names of games; all without."""
    attacks: Sequence[str] = ()
    """Names of attacks, or `none`; all without. Others may be added to a folder later."""
    quick: bool = False
    """A network with random weights, one game without attack and one with FGSM."""

    def __post_init__(self) -> None:
        if self.budget < 2 or self.budget % 2:
            raise InputError(f"the budget must be even, at least 2; it is {self.budget}")
        for game in self.only:
            if game not in GAMES:
                raise InputError(f"there is no game {game!r}: choose of {', '.join(GAMES)}")
        for attack in self.attacks:
            if attack not in (NONE, *ATTACKS):
                known = ", ".join((NONE, *ATTACKS))
                raise InputError(f"there is no attack {attack!r}: choose of {known}")
        if self.nets is None and not self.quick:
            raise InputError("say where the policies lie, or take the quick form")


def plan(request: Request) -> Plan:
    """Find the policies that are there, and say which are not."""
    procgen("fruitbot", 1).close()
    episodes, parallel = (1, 1) if request.quick else (request.episodes, request.parallel)
    cells: list[Cell] = []
    left_out: list[str] = []
    for game, trained, policy in policies(request, left_out):
        made_from = digest(list(policy.state_dict().values()))
        attacks: list[tuple[str, int]] = [(NONE, 0)]
        names = ["FGSM"] if request.quick else list(ATTACKS)
        attacks += [(name, eps) for eps in (EPS[:1] if request.quick else EPS) for name in names]
        for name, eps in attacks:
            if request.attacks and name not in request.attacks:
                continue
            about = {"game": game, "training": trained, "attack": name, "eps": eps}
            run = partial(measure, policy, game, name, eps, episodes, parallel, request.budget)
            cells.append(Cell(about, made_from, run))
    settings = {
        "episodes": episodes,
        "parallel": parallel,
        "budget": request.budget,
        "quick": request.quick,
    }
    return Plan(settings, cells, left_out)


def policies(request: Request, left_out: list[str]) -> list[tuple[str, str, nn.Module]]:
    """Games, ways of training and policies; a sentence is added for each that is not there."""
    if request.quick:
        return [("FruitBot", "random weights", ImpalaPolicy().eval())]
    found = []
    for game in request.only or GAMES:
        for trained, file in GAMES[game].items():
            path = (request.nets or Path()) / file
            try:
                policy = impala_policy(path).to(request.device)
            except InputError as error:
                left_out.append(f"{game}, {trained}, is left out: {error}.")
                continue
            found.append((game, trained, policy))
    return found


def measure(
    policy: nn.Module,
    game: str,
    attack: str,
    eps: int,
    episodes: int,
    parallel: int,
    budget: int,
) -> Record:
    """The returns of episodes on the first 200 levels, the same for every attack."""
    env = procgen(game.lower(), parallel)
    if attack == NONE:
        played = play(policy, env, episodes)
    else:
        by = ATTACKS[attack]
        solver = by.solver(eps / 255, budget)
        played = play(policy, env, episodes, attack=solver, eps=eps / 255, aim=by.aim)
    env.close()
    record: dict[str, Any] = {
        "returns": played.returns.tolist(),
        "lengths": played.lengths.tolist(),
        "mean": played.mean,
        "half_width": played.half_width if episodes > 1 else None,
        "flipped": played.flipped,
        "seconds_per_step": played.seconds_per_step,
        "device": str(next(policy.parameters()).device),
    }
    return record
