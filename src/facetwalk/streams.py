"""Counter-based random numbers: one independent stream for each row of a batch.

A row's numbers depend on its own key alone, never on the rows beside it. So a batch draws
what its members would draw alone, chunks and finished problems change nothing, CPU and GPU
agree to the bit, and the global generator is not used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


def _wrap(number: int) -> int:
    """`number` modulo 2^64, as the signed integer that int64 tensors hold."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def _wrap32(number: int) -> int:
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)


_GOLDEN = _wrap(0x9E3779B97F4A7C15)
_FIRST = _wrap(0xBF58476D1CE4E5B9)
_SECOND = _wrap(0x94D049BB133111EB)


def _mix(bits: Tensor) -> Tensor:
    """SplitMix64's finaliser on a fresh int64 tensor, in place."""
    for shift, factor in ((30, _FIRST), (27, _SECOND)):
        bits ^= (bits >> shift) & ((1 << (64 - shift)) - 1)
        bits *= factor
    bits ^= (bits >> 31) & ((1 << 33) - 1)
    return bits


def _mix_one(bits: int) -> int:
    """As `_mix`, of one number, modulo 2^64."""
    for shift, factor in ((30, _FIRST), (27, _SECOND)):
        bits %= 1 << 64
        bits = (bits ^ bits >> shift) * factor
    bits %= 1 << 64
    return bits ^ bits >> 31


@dataclass(frozen=True)
class Streams:
    """One random stream a row. Drawing twice gives the same numbers: `fold` first.

    >>> both = Streams.from_seeds(torch.tensor([7, 8]), torch.tensor([0, 0]))
    >>> alone = Streams.from_seeds(torch.tensor([8]), torch.tensor([0]))
    >>> bool((both.uniform((3,))[1] == alone.uniform((3,))[0]).all())
    True
    """

    keys: Tensor
    """int64 of shape `(B,)`."""

    @classmethod
    def from_seeds(cls, seeds: Tensor, starts: Tensor) -> Streams:
        """A stream for each pair of a problem's seed and the number of its start, both `(B,)`."""
        return cls(_mix(_mix(seeds.long() * _GOLDEN + 1) + starts.long() * _SECOND))

    def fold(self, *numbers: int | Tensor) -> Streams:
        """New streams, one for each combination of row and `numbers` (a step, a site, ...).

        A number may be an int64 tensor without dimensions.
        """
        word: int | Tensor = 0
        for number in numbers:
            word = word + (number + 1) * _FIRST
            word = _mix(word) if isinstance(word, Tensor) else _wrap(_mix_one(word))
        return Streams(_mix(self.keys + word))

    def uniform(self, shape: Sequence[int], dtype: torch.dtype = torch.float32) -> Tensor:
        """Uniform numbers in (0, 1), shape `(B, *shape)`."""
        exact = torch.float64 if dtype == torch.float64 else torch.float32
        fraction = (self._bits(math.prod(shape)) >> 9).bitwise_and_((1 << 23) - 1).to(exact)
        below_one = 1 - torch.finfo(dtype).eps / 2
        uniform = fraction.add_(0.5).mul_(2.0**-23).to(dtype).clamp_max_(below_one)
        return uniform.reshape(-1, *shape)

    def _bits(self, count: int) -> Tensor:
        """Random int32 `(B, count)`: a 32-bit hash of each position under each row's key.

        Keys are mixed in 64 bits; positions in 32, whose arithmetic is several times faster.
        """
        low, high = self.keys.to(torch.int32), (self.keys >> 32).to(torch.int32)
        position = torch.arange(count, dtype=torch.int32, device=self.keys.device)
        bits = position * _wrap32(0x9E3779B9) + low[:, None]
        bits ^= (bits >> 16).bitwise_and_(0xFFFF)
        bits *= _wrap32(0x7FEB352D)
        bits ^= high[:, None]
        bits ^= (bits >> 15).bitwise_and_(0x1FFFF)
        bits *= _wrap32(0x846CA68B)
        bits ^= (bits >> 16).bitwise_and_(0xFFFF)
        return bits

    def normal(self, shape: Sequence[int], dtype: torch.dtype = torch.float32) -> Tensor:
        """Standard normal numbers, shape `(B, *shape)`."""
        return torch.erfinv(2 * self.uniform(shape) - 1).mul_(math.sqrt(2)).to(dtype)

    def signs(self, shape: Sequence[int], dtype: torch.dtype = torch.float32) -> Tensor:
        """Numbers that are -1 or 1 with equal probability, shape `(B, *shape)`."""
        return torch.where(self.uniform(shape) < 0.5, -1.0, 1.0).to(dtype)
