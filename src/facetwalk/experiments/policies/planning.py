"""The cells of the experiment: every attack on every policy that is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from facetwalk.control import play
from facetwalk.control.environments import procgen
from facetwalk.control.perturbing import BUDGET, Aim
from facetwalk.digests import digest
from facetwalk.experiments.adversarial.attacks import PGD_STEP
from facetwalk.experiments.experiment import Cell, Plan, Record
from facetwalk.solvers import AdrGd, Auto, Fgsm, Method, Sign
from facetwalk.types import InputError
from facetwalk.zoo import ImpalaPolicy, coinrun_policy, impala_policy

GAMES = {
    "FruitBot": {
        "natural": "FruitBot_ppo.pt",
        "RADIAL": "FruitBot_radial_ppo.pt",
        "adversarial": "AT_PPO_FruitBot.pt",
    },
    "Jumper": {"natural": "Jumper_ppo.pt", "adversarial": "AT_PPO_Jumper.pt"},
    "CoinRun": {"natural": "CoinRun_ppo.pt", "RADIAL": "CoinRun_radial_ppo.pt"},
}
"""Policies of each game by how they were trained: files with published weights."""

SHIPPED = ("CoinRun", "natural")
"""The one that comes with the package, for whoever has no file of it."""

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
    """Folder of policies; without, there is the one that ships."""
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
    """The policy that ships, one game without attack and one with FGSM."""

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
        absent = [game for game in self.only if game != SHIPPED[0]]
        if self.nets is None and absent and not self.quick:
            raise InputError(
                f"say where the policies of {absent[0]} lie: only that of {SHIPPED[0]} ships"
            )


@dataclass(frozen=True)
class Player:
    """A policy to be read where it is needed."""

    game: str
    trained: str
    file: Path | None
    """None for the one that ships."""

    def policy(self, device: str) -> ImpalaPolicy:
        """In eval mode."""
        policy = coinrun_policy() if self.file is None else impala_policy(self.file)
        return policy.to(device)

    @property
    def deterministic(self) -> bool:
        """Whether it takes its most likely action; the one that ships draws, as it was trained."""
        return self.file is not None


def plan(request: Request) -> Plan:
    """Find the policies that are there, and say which are not."""
    procgen("coinrun", 1).close()
    if request.quick:
        request = replace(request, episodes=1, parallel=1)
    found, left_out = policies(request)
    cells: list[Cell] = []
    for player, policy in found:
        made_from = digest(list(policy.state_dict().values()))
        attacks: list[tuple[str, int]] = [(NONE, 0)]
        names = ["FGSM"] if request.quick else list(ATTACKS)
        attacks += [(name, eps) for eps in (EPS[:1] if request.quick else EPS) for name in names]
        for name, eps in attacks:
            if request.attacks and name not in request.attacks:
                continue
            about = {"game": player.game, "training": player.trained, "attack": name, "eps": eps}
            cells.append(Cell(about, made_from, partial(measure, player, name, eps, request)))
    settings = {
        "episodes": request.episodes,
        "parallel": request.parallel,
        "budget": request.budget,
        "quick": request.quick,
    }
    return Plan(settings, cells, left_out)


def policies(request: Request) -> tuple[list[tuple[Player, ImpalaPolicy]], list[str]]:
    """Those that are asked for, and a sentence for each that is not there."""
    found: list[tuple[Player, ImpalaPolicy]] = []
    left_out: list[str] = []
    if request.nets is None and not request.quick:
        left_out.append("No folder of policies was named: this is the one that ships.")
    for player in _players(request):
        try:
            found.append((player, player.policy(request.device)))
        except InputError as error:
            left_out.append(f"{player.game}, {player.trained}, is left out: {error}.")
    return found, left_out


def _players(request: Request) -> list[Player]:
    if request.quick:
        return [Player(*SHIPPED, None)]
    return [
        Player(game, trained, _file(request.nets, game, trained))
        for game in request.only or GAMES
        for trained in GAMES[game]
        if request.nets is not None or (game, trained) == SHIPPED
    ]


def _file(nets: Path | None, game: str, trained: str) -> Path | None:
    file = None if nets is None else nets / GAMES[game][trained]
    is_absent = file is None or not file.exists()
    return None if is_absent and (game, trained) == SHIPPED else file


def measure(player: Player, attack: str, eps: int, request: Request) -> Record:
    """The returns of episodes on the first 200 levels, the same for every attack."""
    policy = player.policy(request.device)
    env = procgen(player.game.lower(), request.parallel)
    options: dict[str, Any] = {"deterministic": player.deterministic}
    if attack != NONE:
        by = ATTACKS[attack]
        solver = by.solver(eps / 255, request.budget)
        options |= {"attack": solver, "eps": eps / 255, "aim": by.aim}
    played = play(policy, env, request.episodes, **options)
    env.close()
    record: dict[str, Any] = {
        "returns": played.returns.tolist(),
        "lengths": played.lengths.tolist(),
        "mean": played.mean,
        "half_width": played.half_width if request.episodes > 1 else None,
        "flipped": played.flipped,
        "seconds_per_step": played.seconds_per_step,
        "device": str(next(policy.parameters()).device),
    }
    return record
