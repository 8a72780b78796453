"""The cells of the experiment: every network with every number of images at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch

from facetwalk.experiments.adversarial.step_cost import (
    BATCHES,
    FEWEST_STEPS,
    MOST_STEPS,
    sizes,
    time_steps,
)
from facetwalk.experiments.experiment import Cell, Plan, Record
from facetwalk.experiments.runtime.networks import SEED, TIMED, Timed

_QUICK_NOTE = f"The quick form has {TIMED[0].name} alone, one image at a time and few steps."
_CPU_NOTE = "On a CPU photographs come one at a time: a step for more of them takes minutes."


@dataclass(frozen=True)
class Request:
    """What is asked for."""

    device: str = "cpu"
    quick: bool = False
    """The smallest network, one image, few steps."""


def plan(request: Request) -> Plan:
    """Networks as they start; nothing has to be there.

    >>> [cell.words for cell in plan(Request(quick=True)).cells]
    ['network MNIST CNN, batch 1']
    """
    left_out: list[str] = []
    if request.quick:
        chosen = [(TIMED[0], 1)]
        left_out.append(_QUICK_NOTE)
    else:
        photographs = BATCHES if request.device != "cpu" else BATCHES[:1]
        chosen = [
            (timed, batch)
            for timed in TIMED
            for batch in (photographs if timed.data == "imagenet" else BATCHES)
        ]
        left_out += [_CPU_NOTE] if photographs != BATCHES else []
    most_steps = FEWEST_STEPS if request.quick else MOST_STEPS
    cells = [
        Cell(
            {"network": timed.name, "batch": batch},
            f"random weights, seed {SEED}",
            partial(_measure, timed, batch, request.device, most_steps),
        )
        for timed, batch in chosen
    ]
    return Plan({"device": request.device, "quick": request.quick}, cells, left_out)


def _measure(timed: Timed, batch: int, device: str, most_steps: int) -> Record:
    on_gpu = device != "cpu"
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    victim = timed.victim(batch, device)
    found = time_steps(victim, batch, most_steps)
    return {
        **sizes(victim),
        "steps": found.steps,
        "seconds": found.seconds,
        "peak_mebibytes": torch.cuda.max_memory_allocated() >> 20 if on_gpu else None,
    }
