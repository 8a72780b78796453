"""The runs of the experiment, and training them side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from facetwalk.experiments.experiment import Cell, Plan
from facetwalk.experiments.rl.training import PAPER, VARIANTS, Run, check_env, train
from facetwalk.types import InputError

ALGORITHMS = ("td3", "ddpg")
_EVALUATIONS = 20
"""Points of a learning curve."""


@dataclass(frozen=True)
class Request:
    """What is asked for."""

    envs: Sequence[str] = ("HalfCheetah-v5",)
    algos: Sequence[str] = ("td3",)
    steps: int = 100_000
    seeds: int = 3
    device: str = "cpu"
    quick: bool = False
    """Small networks on Pendulum-v1, one seed, some hundred steps."""

    def __post_init__(self) -> None:
        for algo in self.algos:
            if algo not in ALGORITHMS:
                raise InputError(f"there is no algorithm {algo!r}: choose {', '.join(ALGORITHMS)}")
        if self.steps % _EVALUATIONS:
            raise InputError(f"steps must be a multiple of {_EVALUATIONS}; it is {self.steps}")

    def runs(self) -> list[Run]:
        """One for each environment, algorithm, seed and variant.

        >>> [run.variant for run in Request(seeds=1).runs()]
        ['plain', 'ADR-GD', 'ours']
        """
        envs, steps, seeds, episodes = self.envs, self.steps, self.seeds, 10
        every, starts, width, batch = steps // _EVALUATIONS, min(10_000, steps // 10), 256, 256
        if self.quick:
            envs, steps, seeds, episodes = ("Pendulum-v1",), 600, 1, 2
            every, starts, width, batch = 200, 100, 64, 64
        return [
            Run(env, algo, variant, seed, steps, every, episodes, starts, width, batch, self.device)
            for env in envs
            for algo in self.algos
            for seed in range(seeds)
            for variant in VARIANTS
        ]


def plan(request: Request, out: Path) -> Plan:
    """A cell for each run; one that is trained already is only read.

    Those of one seed come before those of the next, and of these the slowest first.
    """
    for env in dict.fromkeys(run.env for run in request.runs()):
        check_env(env)
    runs = sorted(request.runs(), key=lambda run: (run.seed, run.variant != PAPER))
    cells = [
        Cell(
            {"env": run.env, "algo": run.algo, "variant": run.variant, "seed": run.seed},
            "",
            partial(train, run, out / "runs"),
        )
        for run in runs
    ]
    shared = asdict(runs[0])
    settings = {name: shared[name] for name in ("steps", "width", "batch", "device")}
    return Plan(settings, cells)
