"""What learning curves say: a table, sentences, and the paper's figure 4."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from facetwalk.experiments.drawing import blank_figure
from facetwalk.experiments.experiment import Record
from facetwalk.experiments.rl.training import PLAIN
from facetwalk.experiments.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ABOUT = (
    "Returns of evaluations without noise and without refinement, mean ± standard deviation over "
    "seeds. `plain` is Stable-Baselines3's algorithm; `ADR-GD` refines a quarter of its actions as "
    "in the paper, with 100 steps of two gradients; `ours` with a tenth of those gradients.",
)
_COLORS = {"plain": "#57606a", "ADR-GD": "#bf8700", "ours": "#0969da"}
_DASHES = {"td3": "-", "ddpg": "--"}


def curves(records: Sequence[Record]) -> dict[tuple[str, str, str], tuple[list[int], np.ndarray]]:
    """By environment, algorithm and variant: steps `(G,)`, and returns `(seeds, G)`."""
    found: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        key = record["env"], record["algo"], record["variant"]
        found.setdefault(key, []).append(record)
    return {
        key: (same[0]["steps"], np.array([record["means"] for record in same]))
        for key, same in found.items()
    }


def tables(records: Sequence[Record]) -> list[Table]:
    """Of each environment: the last and the best evaluation, and the mean of all.

    >>> record = {"env": "E", "algo": "td3", "variant": "plain", "steps": [1, 2], "means": [3, 5]}
    >>> tables([record])[0].rows
    [['td3', 'plain', '1', '5 ± 0', '5 ± 0', '4 ± 0']]
    """
    columns = ["algorithm", "variant", "seeds", "last", "best", "mean of all"]
    by_env: dict[str, list[list[str]]] = {}
    for (env, algo, variant), (_, returns) in curves(records).items():
        numbers = (returns[:, -1], returns.max(1), returns.mean(1))
        cells = [f"{each.mean():.4g} ± {each.std():.3g}" for each in numbers]
        by_env.setdefault(env, []).append([algo, variant, str(len(returns)), *cells])
    return [
        Table(env, columns, rows, words=["algorithm", "variant"]) for env, rows in by_env.items()
    ]


def comment(records: Sequence[Record]) -> list[str]:
    """Whether refinement helped, by the mean over the whole curve."""
    found, sentences = curves(records), []
    for (env, algo, variant), (_, returns) in found.items():
        if variant == PLAIN or (env, algo, PLAIN) not in found:
            continue
        plain = found[env, algo, PLAIN][1].mean(1)
        refined = returns.mean(1)
        gain = refined.mean() - plain.mean()
        spread = float(np.hypot(plain.std(), refined.std()))
        clear = f"{'more' if abs(gain) > spread else 'less'} than the seeds' spread of {spread:.3g}"
        if min(len(plain), len(refined)) < 2:
            clear = "of which one seed says little"
        sentences.append(
            f"{env}, {algo}, {variant}: the mean return over all evaluations changed by "
            f"{gain:+.4g}, {clear}."
        )
    return sentences


def draw(records: Sequence[Record]) -> Figure:
    """A panel for each environment; bands are a standard deviation over seeds to each side."""
    found = curves(records)
    envs = list(dict.fromkeys(env for env, _, _ in found))
    figure = blank_figure(1 + 4 * len(envs), 3.4)
    panels: Any = figure.subplots(1, len(envs), squeeze=False)[0]
    for axes, env in zip(panels, envs, strict=True):
        for (where, algo, variant), (steps, returns) in found.items():
            if where != env:
                continue
            mean, spread = returns.mean(0), returns.std(0)
            color = _COLORS[variant]
            axes.plot(steps, mean, _DASHES[algo], color=color, label=f"{algo.upper()}, {variant}")
            axes.fill_between(steps, mean - spread, mean + spread, color=color, alpha=0.15, lw=0)
        axes.set_title(env, fontsize=11)
        axes.set_xlabel("steps", fontsize=9)
        axes.tick_params(labelsize=8)
        axes.grid(color="#eaeef2")
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    panels[0].set_ylabel("return", fontsize=9)
    panels[0].legend(fontsize=8, frameon=False)
    return figure
