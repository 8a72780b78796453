"""Attacks on what a policy sees of its environments, with an account of what came of them."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch

from facetwalk.control.perturbing import Aim, as_shown, perturbed, require_attack
from facetwalk.control.playing import Episodes
from facetwalk.control.policies import as_seen, logits_at, logits_of, require_numbers
from facetwalk.solvers import Auto, Method
from facetwalk.spaces import Bounds
from facetwalk.types import InputError


class Adversary:
    """Stands between a policy and so many environments side by side.

    >>> policy = torch.nn.Linear(2, 2).eval()
    >>> adversary = Adversary(policy, 1, eps=0.1)
    >>> adversary.show(np.zeros((1, 2), dtype=np.float32)).shape
    (1, 2)
    >>> adversary.note(np.array([3.0]), np.array([True]))
    >>> adversary.report().returns.tolist()
    [3.0]
    """

    def __init__(
        self,
        policy: Any,
        count: int,
        eps: float,
        solver: Method | Auto | None = None,
        bounds: Bounds | None = None,
        aim: Aim = "away",
    ) -> None:
        require_attack(eps, solver, aim)
        self.logits, self.eps = logits_of(policy), eps
        self.solver, self.bounds = solver, bounds
        self.aim: Aim = aim
        require_numbers(self.logits)
        self.returns, self.lengths = np.zeros(count), np.zeros(count, dtype=int)
        self.finished: list[tuple[float, int]] = []
        self.flips, self.decisions, self.seconds = 0, 0, 0.0

    def show(self, observations: Any) -> np.ndarray:
        """Perturbed observations `(N, *shape)`, of the type of the true ones."""
        began = time.perf_counter()
        found = perturbed(
            self.logits,
            observations,
            self.eps,
            solver=self.solver,
            bounds=self.bounds,
            aim=self.aim,
            seed=self.decisions,
        )
        shown = as_shown(found.observations.cpu(), torch.from_numpy(observations), self.eps).numpy()
        actions = logits_at(as_seen(shown, self.logits), self.logits).argmax(1)
        self.flips += int((actions != found.own).sum())
        self.decisions += len(shown)
        self.seconds += time.perf_counter() - began
        return shown

    def note(self, rewards: np.ndarray, over: np.ndarray, counts: np.ndarray | bool = True) -> None:
        """Take account of a step: its rewards, which episodes are over, and where it `counts`."""
        self.returns += np.where(counts, rewards, 0.0)
        self.lengths += counts
        for number in np.flatnonzero(over):
            self.finished.append((float(self.returns[number]), int(self.lengths[number])))
        self.forget(over)

    def forget(self, over: np.ndarray | slice = slice(None)) -> None:
        """Begin the account of episodes anew, those that are `over` or all."""
        self.returns[over], self.lengths[over] = 0.0, 0

    def report(self) -> Episodes:
        """What became of the episodes that are over, and of all actions."""
        if not self.finished:
            raise InputError("no episode is over yet: step the environments until one is")
        totals, steps = (np.array(column) for column in zip(*self.finished, strict=True))
        share, seconds = self.flips / self.decisions, self.seconds / self.decisions
        return Episodes(totals, steps, share, seconds)
