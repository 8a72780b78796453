"""`python -m facetwalk.training.policies`: train a policy of a game of Procgen."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from facetwalk.training.policies import PolicyRecipe, make_policy
from facetwalk.types import FacetwalkError


def main(words: list[str]) -> None:
    """Read options, make the policy, say what it is worth."""
    parser = argparse.ArgumentParser("facetwalk.training.policies", description=__doc__)
    parser.add_argument("--game", default="coinrun", help="as Procgen names it")
    parser.add_argument("--levels", type=int, default=200, help="to train on, easy ones")
    parser.add_argument("--steps", type=int, default=25_000_000, help="of all games together")
    parser.add_argument("--envs", type=int, default=64, help="games side by side")
    parser.add_argument("--rollout", type=int, default=16_384, help="steps before an update")
    parser.add_argument("--minibatches", type=int, default=8, help="updates in an epoch")
    parser.add_argument("--epochs", type=int, default=3, help="how often each step is learned from")
    cooling = "share of the steps in which learning rate and entropy fall to zero at the end"
    parser.add_argument("--cooling", type=float, default=0.0, help=cooling)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--precision", choices=("full", "bf16"), default="bf16")
    parser.add_argument("--minutes", type=float, help="stop after so long; run again to go on")
    parser.add_argument("--episodes", type=int, default=100, help="to measure the policy by")
    parser.add_argument("--restart", action="store_true", help="begin anew")
    parser.add_argument("--out", type=Path, required=True, help="file for the weights")
    asked = parser.parse_args(words)
    try:
        record = make_policy(
            PolicyRecipe(
                game=asked.game,
                levels=asked.levels,
                steps=asked.steps,
                envs=asked.envs,
                rollout=asked.rollout,
                minibatches=asked.minibatches,
                epochs=asked.epochs,
                seed=asked.seed,
                cooling=asked.cooling,
                precision=asked.precision,
            ),
            asked.out,
            device=asked.device,
            minutes=asked.minutes,
            episodes=asked.episodes,
            restart=asked.restart,
            command=shlex.join(["python", "-m", "facetwalk.training.policies", *words]),
            progress=True,
        )
    except FacetwalkError as error:
        parser.exit(2, f"error: {error}\n")
    print(f"{record['steps']:,} steps in {record['seconds']:,.0f} s")
    for levels in ("train_levels", "fresh_levels"):
        for way, found in record[levels].items():
            worth = f"{found['mean_return']:.2f} ± {found['half_width']:.2f}"
            title = f"{levels}, {way} actions".replace("_", " ")
            print(f"{title}: mean return {worth}, {found['episodes']} episodes")
    print(f"Wrote {asked.out} and {asked.out.with_suffix('.json')}.")


if __name__ == "__main__":
    main(sys.argv[1:])
