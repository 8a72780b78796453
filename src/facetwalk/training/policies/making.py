"""Makes a policy: weights, and a record of what they are worth beside them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from facetwalk.control import play
from facetwalk.control.environments import procgen
from facetwalk.digests import digest
from facetwalk.progress import progress_report
from facetwalk.training.checkpoint import Checkpoint, check_same
from facetwalk.training.making import (
    as_safetensors,
    check_safetensors,
    machine,
    repeatable_convolutions,
)
from facetwalk.training.policies.recipe import PolicyRecipe
from facetwalk.types import InputError
from facetwalk.writing import make_folder, write_whole
from facetwalk.zoo import ImpalaPolicy

Games = Callable[..., Any]
"""`(name, count, levels, seed, first=0)`: so many games of gym3, on `levels` levels from `first`;
0 levels are all."""


def make_policy(
    recipe: PolicyRecipe,
    out: Path,
    *,
    device: str = "cpu",
    minutes: float | None = None,
    episodes: int = 100,
    restart: bool = False,
    command: str = "",
    progress: bool = False,
    games: Games = procgen,
) -> dict[str, Any]:
    """Train a policy, measure it, write both to files, and return the record.

    `out`, torch's file or one that is called `.safetensors`, holds its weights, which
    `zoo.impala_policy` loads; beside it lie the record, a JSON file, and until all steps are done a
    checkpoint, from which training goes on when it is run again.

    Args:
        device: "cpu" or "cuda".
        minutes: stop after so long, measure and write what is there.
        episodes: of play, on the levels of training and as many on others, with actions that are
            drawn by their probabilities, as in training, and with the most likely ones.
        restart: begin anew, whatever there is.
        command: how to make it again, for the record.
        progress: whether to show how far it has come.
        games: makes the games that are played.

    >>> make_policy(PolicyRecipe(game="coinrun"), Path("/dev/null/CoinRun_ppo.pt"))
    Traceback (most recent call last):
    facetwalk.types.InputError: /dev/null cannot be a folder: File exists
    """
    from facetwalk.training.policies.fitting import train_policy

    if out.suffix == ".safetensors":
        check_safetensors()
    make_folder(out.parent)
    asked = asdict(recipe)
    record_file = out.with_suffix(".json")
    checkpoint = Checkpoint(out.with_suffix(".checkpoint"), {**asked, "device": device})
    if restart:
        record_file.unlink(missing_ok=True)
        checkpoint.remove()
    known = _record(record_file, asked) if record_file.exists() and out.exists() else None
    if known is not None and known["steps"] >= recipe.steps:
        return known
    world = games(recipe.game, recipe.envs, recipe.levels, recipe.seed)
    with repeatable_convolutions(), progress_report(progress, recipe.game) as report:
        trained = train_policy(
            recipe, world, device=device, minutes=minutes, checkpoint=checkpoint, report=report
        )
    world.close()
    net = trained.net.to(device)
    record = {
        "training": asked,
        "steps": trained.steps,
        **measured(net, recipe, episodes, games),
        "history": trained.history,
        "weights_digest": digest(trained.net.state_dict().values()),
        "seconds": round(trained.seconds, 3),
        "command": command,
        "torch": torch.__version__,
        "machine": machine(device),
    }
    write_whole(out, _saved(net, out.suffix))
    write_whole(record_file, (json.dumps(record, indent=1) + "\n").encode())
    if trained.steps >= recipe.steps:
        checkpoint.remove()
    return record


def _record(file: Path, asked: dict[str, Any]) -> dict[str, Any]:
    """That of a policy that is there already, if it is the one that was asked for."""
    try:
        record = json.loads(file.read_text())
        known, _ = dict(record["training"]), int(record["steps"])
    except (ValueError, LookupError, TypeError) as error:
        raise InputError(
            f"{file} is no record of a training: add --restart to write over it"
        ) from error
    check_same(file, known, asked)
    return record


def measured(
    net: ImpalaPolicy, recipe: PolicyRecipe, episodes: int = 100, games: Games = procgen
) -> dict[str, Any]:
    """What a policy is worth on the levels of training and on others, by way of acting."""
    levels = {"train_levels": (0, recipe.levels), "fresh_levels": (recipe.levels, 0)}
    ways = {"drawn": False, "most_likely": True}
    return {
        name: {
            way: _played(net, games, recipe, episodes, first, count, deterministic)
            for way, deterministic in ways.items()
        }
        for name, (first, count) in levels.items()
    }


def _played(
    net: ImpalaPolicy,
    games: Games,
    recipe: PolicyRecipe,
    episodes: int,
    first: int,
    levels: int,
    deterministic: bool,
) -> dict[str, Any]:
    """The returns of each game for one episode."""
    world = games(recipe.game, episodes, levels, recipe.seed + 1, first=first)
    played = play(net, world, episodes, deterministic=deterministic)
    world.close()
    return {
        "episodes": episodes,
        "mean_return": played.mean,
        "half_width": played.half_width,
        "mean_length": float(played.lengths.mean()),
    }


def _saved(net: ImpalaPolicy, suffix: str) -> bytes:
    if suffix == ".safetensors":
        return as_safetensors(net)
    content = io.BytesIO()
    weights = {name: value.cpu().contiguous() for name, value in net.state_dict().items()}
    torch.save(weights, content)
    return content.getvalue()
