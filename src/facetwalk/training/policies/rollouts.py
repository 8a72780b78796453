"""Rollouts whose images stay on the device as bytes; importing this needs the extra."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.type_aliases import RolloutBufferSamples
from torch import Tensor


class DeviceRollouts(RolloutBuffer):
    """Stable-Baselines3's buffer for images `(channels, height, width)` of bytes.

    They are copied there when they are added, and no memory of the host is kept for them.
    """

    images: Tensor
    """`(steps * environments, *shape)`; an image's channels lie side by side."""

    def reset(self) -> None:
        super().reset()
        self.observations = self.observations[..., :0]
        if not hasattr(self, "images"):
            self.images = torch.empty(
                (self.buffer_size * self.n_envs, *self.obs_shape),
                dtype=torch.uint8,
                device=self.device,
                memory_format=torch.channels_last,
            )

    def add(self, obs: np.ndarray, *args: Any, **kwargs: Any) -> None:
        first = self.pos * self.n_envs
        self.images[first : first + self.n_envs] = torch.as_tensor(obs).to(self.device)
        super().add(obs[..., :0], *args, **kwargs)

    def get(self, batch_size: int | None = None) -> Generator[RolloutBufferSamples, None, None]:
        """All steps in random order, in batches; random numbers are torch's."""
        columns = (self.actions, self.values, self.log_probs, self.advantages, self.returns)
        actions, *others = (self.to_torch(column).flatten(0, 1) for column in columns)
        rows = torch.randperm(len(self.images)).to(self.device)
        for some in rows.split(batch_size or len(rows)):
            chosen = (column[some] for column in others)
            yield RolloutBufferSamples(self.images[some], actions[some].float(), *chosen)
