"""Photographs that are read when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from facetwalk.data.checksums import AGAIN
from facetwalk.data.tensors import to_images
from facetwalk.messages import reason
from facetwalk.types import InputError, MissingExtraError

if TYPE_CHECKING:
    from PIL.Image import Image

SHORT_SIDE = 256
CROP = 224

_FORMATS = ("JPEG", "PNG")
"""Some photographs of ImageNet are PNG by another name. To read what Pillow knows besides, it may
start other programs."""


@dataclass(frozen=True)
class ImageFiles:
    """Images `(N, 3, 224, 224)` in [0, 1], indexed like a tensor but read from files.

    Each is resized so that its shorter side has 256 pixels, and its centre is taken.
    """

    paths: tuple[Path, ...] = field(repr=False)

    def __post_init__(self) -> None:
        import_pillow()

    @property
    def shape(self) -> torch.Size:
        """What the shape of all images as one tensor would be."""
        return torch.Size((len(self.paths), 3, CROP, CROP))

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, rows: int | slice | Sequence[int] | Tensor) -> Tensor:
        """One image `(3, 224, 224)` for an integer, and else a tensor `(B, 3, 224, 224)`."""
        numbers = torch.arange(len(self))[rows]
        images = [read_image(self.paths[number]) for number in numbers.flatten().tolist()]
        stacked = torch.stack(images) if images else torch.empty(0, *self.shape[1:])
        return stacked.reshape(*numbers.shape, *self.shape[1:])


def read_image(path: Path) -> Tensor:
    """The centre `(3, 224, 224)` of a photograph, in [0, 1]."""
    import_pillow()
    from PIL import Image

    try:
        with Image.open(path, formats=_FORMATS) as file:
            photograph = file.convert("RGB")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise InputError(f"{path} cannot be read as an image ({reason(error)}): {AGAIN}") from error
    return to_images(np.asarray(_centre(photograph)).transpose(2, 0, 1)).contiguous()


def import_pillow() -> None:
    """Raise unless Pillow is there."""
    try:
        import PIL.Image  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("reading photographs", "images") from error


def _centre(photograph: Image) -> Image:
    from PIL.Image import Resampling

    shorter = min(photograph.size)
    width, height = (SHORT_SIDE * side // shorter for side in photograph.size)
    left, top = (round((side - CROP) / 2) for side in (width, height))
    resized = photograph.resize((width, height), Resampling.BILINEAR)
    return resized.crop((left, top, left + CROP, top + CROP))
