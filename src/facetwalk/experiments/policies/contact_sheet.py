"""Frames of a game as they are, as an attack shows them, and the difference magnified."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from facetwalk.control import perturbed
from facetwalk.control.environments import as_stepped, procgen
from facetwalk.control.perturbing import Aim
from facetwalk.experiments.drawing import blank_figure, check_drawable, save_figure
from facetwalk.experiments.policies.planning import ATTACKS, EPS, OURS, Request, policies
from facetwalk.solvers import Auto, Method
from facetwalk.types import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save_frames(request: Request, path: Path) -> None:
    """Draw the first policy that is there under our attack, or FGSM in the quick form."""
    check_drawable(path)
    found, left_out = policies(request)
    if not found:
        raise InputError(f"there is no policy to draw: {left_out[0]}")
    player, policy = found[0]
    eps = EPS[0] / 255
    attack = ATTACKS["FGSM" if request.quick else OURS]
    solver = attack.solver(eps, request.budget)
    save_figure(draw_frames(policy, player.game, solver, eps, aim=attack.aim), path)


def draw_frames(
    policy: nn.Module,
    game: str,
    solver: Method | Auto,
    eps: float,
    at: Sequence[int] = (5, 25, 50, 75, 100),
    aim: Aim = "away",
) -> Figure:
    """A column for each of these steps of an attacked episode: frame, attacked frame, change."""
    world = as_stepped(procgen(game.lower(), 1))
    seen = world.begin(0)
    figure = blank_figure(1.7 * len(at), 5.6)
    grid: Any = figure.subplots(3, len(at), squeeze=False)
    for step in range(max(at) + 1):
        found = perturbed(policy, seen, eps, solver=solver, aim=aim, seed=step)
        if step in at:
            _column(grid[:, at.index(step)], step, seen, found, eps)
        seen, _, _ = world.step(found.actions.cpu().numpy())
    for axes, name in zip(
        grid[:, 0], ("frame", "attacked", f"change x {0.5 / eps:.0f}"), strict=True
    ):
        axes.set_ylabel(name, fontsize=10)
    figure.suptitle(f"{game}, eps {round(255 * eps)}/255, {type(solver).__name__}", fontsize=11)
    return figure


def _column(axes: Any, step: int, seen: np.ndarray, found: Any, eps: float) -> None:
    true = torch.from_numpy(seen[0]).permute(1, 2, 0).numpy() / 255
    shown = found.observations[0].permute(1, 2, 0).cpu().numpy()
    for place, picture in zip(axes, (true, shown, 0.5 + 0.5 * (shown - true) / eps), strict=True):
        place.imshow(picture.clip(0, 1))
        place.set_xticks([])
        place.set_yticks([])
    axes[0].set_title(f"step {step}: action {int(found.own[0])}", fontsize=8)
    axes[1].set_title(f"action {int(found.actions[0])}", fontsize=8)
