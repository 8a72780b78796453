"""Photographs shifted and mirrored, so that a network sees more of them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

_CROP_MARGIN = 4


def crop_and_flip(images: Tensor, generator: Generator) -> Tensor:
    """Images `(B, C, H, W)`, each shifted by up to 4 pixels and half of them mirrored.

    >>> crop_and_flip(torch.rand(2, 3, 32, 32), Generator()).shape
    torch.Size([2, 3, 32, 32])
    """
    count, _, height, width = images.shape
    device = images.device
    shift_y, shift_x = torch.randint(
        2 * _CROP_MARGIN + 1, (2, count, 1), generator=generator, device=device
    )
    mirrored = torch.rand(count, 1, generator=generator, device=device) < 0.5
    rows = shift_y + torch.arange(height, device=device)
    columns = shift_x + torch.arange(width, device=device)
    columns = torch.where(mirrored, columns.flip(1), columns)
    numbers = torch.arange(count, device=device)[:, None, None]
    padded = F.pad(images, [_CROP_MARGIN] * 4)
    return padded[numbers, :, rows[:, :, None], columns[:, None, :]].movedim(3, 1)
