"""What every loader returns."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn


@dataclass(frozen=True)
class Loaded:
    """A network in eval mode, with what one needs to know to call it."""

    model: nn.Module
    input_shape: tuple[int, ...]
    """Shape of one input; the model takes batches `(B, *input_shape)`."""
    name: str
    """A short name for tables and messages."""
    dtype: torch.dtype = torch.float32
    """Floating-point type of the inputs."""
