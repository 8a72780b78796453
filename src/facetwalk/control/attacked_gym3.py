"""Environments of gym3, attacked; importing this needs it."""

from __future__ import annotations

from typing import Any

import numpy as np
from gym3 import Wrapper  # pyright: ignore[reportMissingImports]

from facetwalk.control.adversary import Adversary
from facetwalk.control.playing import Episodes


class AttackedGym3(Wrapper):
    """Environments with images `rgb` through the eyes of an adversary's victim, a policy that takes
    their channels first. Others see them last, as they were."""

    def __init__(self, env: Any, adversary: Adversary) -> None:
        super().__init__(env)
        self.adversary = adversary
        self.seen: tuple[Any, Any, Any] | None = None

    def act(self, ac: Any) -> None:
        self.env.act(ac)
        rewards, _, first = self.env.observe()
        self.adversary.note(rewards, first)
        self.seen = None

    def observe(self) -> tuple[Any, Any, Any]:
        """Rewards, attacked observations, and which of them are the first of an episode."""
        if self.seen is None:
            rewards, observations, first = self.env.observe()
            images = np.moveaxis(observations["rgb"], -1, 1).copy()
            shown = np.moveaxis(self.adversary.show(images), 1, -1)
            self.seen = rewards, {**observations, "rgb": shown}, first
        return self.seen

    def report(self) -> Episodes:
        """What became of the episodes that are over, and of all actions."""
        return self.adversary.report()
