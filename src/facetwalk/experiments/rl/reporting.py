"""What learning curves say: a table, sentences, and the paper's figure 4."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from facetwalk.experiments.drawing import blank_figure
from facetwalk.experiments.experiment import Record
from facetwalk.experiments.rl.planning import ALGORITHMS
from facetwalk.experiments.rl.training import PLAIN, VARIANTS
from facetwalk.experiments.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ABOUT = (
    "Returns of evaluations without noise and without refinement: mean over seeds ± 95 % "
    "confidence (Student's t). `plain` is Stable-Baselines3's algorithm; `ADR-GD` refines a "
    "quarter of its actions as in the paper, with 100 steps of two gradients; `ours` with a tenth "
    "of those gradients.",
)
_COLORS = {"plain": "#57606a", "ADR-GD": "#bf8700", "ours": "#0969da"}
_DASHES = {"td3": "-", "ddpg": "--"}
_STUDENT = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""Standard errors to each side of a mean of 2, 3, ..., 10 values that hold 95 %."""


def curves(records: Sequence[Record]) -> dict[tuple[str, str, str], tuple[list[int], np.ndarray]]:
    """By environment, algorithm and variant: steps `(G,)`, and returns `(seeds, G)`."""
    found: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        key = record["env"], record["algo"], record["variant"]
        found.setdefault(key, []).append(record)
    envs = list(dict.fromkeys(env for env, _, _ in found))

    def place(key: tuple[str, str, str]) -> tuple[int, int, int]:
        return envs.index(key[0]), ALGORITHMS.index(key[1]), VARIANTS.index(key[2])

    return {
        key: (found[key][0]["steps"], np.array([record["means"] for record in found[key]]))
        for key in sorted(found, key=place)
    }


def tables(records: Sequence[Record]) -> list[Table]:
    """Of each environment: the last and the best evaluation, and the mean of all.

    >>> record = {"env": "E", "algo": "td3", "variant": "plain", "steps": [1, 2], "means": [3, 5]}
    >>> tables([record])[0].rows
    [['td3', 'plain', '1', '5', '5', '4']]
    """
    columns = ["algorithm", "variant", "seeds", "last", "best", "mean of all"]
    by_env: dict[str, list[list[str]]] = {}
    for (env, algo, variant), (_, returns) in curves(records).items():
        numbers = (returns[:, -1], returns.max(1), returns.mean(1))
        cells = [f"{each.mean():.4g}{_confidence(each)}" for each in numbers]
        by_env.setdefault(env, []).append([algo, variant, str(len(returns)), *cells])
    return [
        Table(env, columns, rows, words=["algorithm", "variant"]) for env, rows in by_env.items()
    ]


def _confidence(values: np.ndarray) -> str:
    """Nothing for a single value.

    >>> _confidence(np.array([1.0, 2.0, 3.0]))
    ' ± 2.48'
    """
    count = len(values)
    if count < 2:
        return ""
    quantile = _STUDENT[min(count - 2, len(_STUDENT) - 1)]
    return f" ± {quantile * values.std(ddof=1) / np.sqrt(count):.3g}"


def comment(records: Sequence[Record]) -> list[str]:
    """Whether refinement helped, by the mean over the whole curve."""
    return [*_changes(records), *_pairs(records)]


def _pairs(records: Sequence[Record]) -> list[str]:
    """How often a refined run is better than the plain one with the same seed."""
    runs: dict[str, dict[Any, float]] = {}
    for record in records:
        which = record["env"], record["algo"], record.get("seed")
        runs.setdefault(record["variant"], {})[which] = float(np.mean(record["means"]))
    plain = runs.pop(PLAIN, {})
    sentences = []
    for variant, refined in runs.items():
        gains = [mean - plain[which] for which, mean in refined.items() if which in plain]
        count, better = len(gains), sum(gain > 0 for gain in gains)
        if count > 1:
            tail = sum(math.comb(count, k) for k in range(max(better, count - better), count + 1))
            sentences.append(
                f"{variant}: the mean return is higher than that of the plain run with the same "
                f"seed in {better} of {count} pairs (sign test, two-sided: p = "
                f"{min(1.0, 2 * tail / 2**count):.2g})."
            )
    return sentences


def _changes(records: Sequence[Record]) -> list[str]:
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
