"""A game as gym3 has them, without Procgen: say which half of the picture is bright."""

from types import SimpleNamespace

import numpy as np

LENGTH = 10
"""Steps of an episode, so that its best return is 10 and a random one has 5."""


class BrightHalves:
    ac_space = SimpleNamespace(eltype=SimpleNamespace(n=2))

    def __init__(self, name, count, levels, seed, first=0):
        self.num, self.seed, self.step, self.closed = count, seed, 0, False
        self.rewards = np.zeros(count, dtype=np.float32)

    @property
    def bright(self):
        return np.random.default_rng([self.seed, self.step]).integers(2, size=self.num)

    def act(self, actions):
        assert actions.dtype == np.int32
        self.rewards = (actions == self.bright).astype(np.float32)
        self.step += 1

    def observe(self):
        pictures = np.full((self.num, 64, 64, 3), 20, dtype=np.uint8)
        for picture, half in zip(pictures, self.bright, strict=True):
            picture[:, 32 * half : 32 * half + 32] = 220
        return self.rewards, {"rgb": pictures}, np.full(self.num, self.step % LENGTH == 0)

    def get_state(self):
        return [bytes([self.seed, self.step])] * self.num

    def set_state(self, states):
        assert len(states) == self.num
        self.seed, self.step = states[0]

    def close(self):
        self.closed = True
