"""Makes the feasible set from the options of `maximize`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from facetwalk import Box, InputError, Space
from facetwalk.cli.files import read_inputs
from facetwalk.spaces import BALLS
from facetwalk.zoo import Loaded

Pair = tuple[float, float]


@dataclass(frozen=True)
class SpaceOptions:
    """What a user said about the space; None is what they left open."""

    box: Pair | None = None
    around: Path | None = None
    eps: float | None = None
    norm: str | None = None
    bounds: Pair | None = None


def make_space(options: SpaceOptions, loaded: Loaded) -> Space:
    """A box, or a ball around each input of a file."""
    if (options.box is None) == (options.around is None):
        raise InputError("say where to search: either --box LOW HIGH or --around FILE --eps E")
    if options.box is not None:
        if (options.eps, options.norm, options.bounds) != (None, None, None):
            raise InputError("--eps, --norm and --bounds describe a ball: use them with --around")
        return make_box(options.box, loaded)
    return _ball(options, loaded)


def make_box(bounds: Pair, loaded: Loaded) -> Box:
    """The same bounds for every entry of the network's input, in its precision."""
    low, high = (torch.tensor(bound, dtype=loaded.dtype) for bound in bounds)
    return Box(low, high, shape=loaded.input_shape)


def _ball(options: SpaceOptions, loaded: Loaded) -> Space:
    norm = options.norm or "inf"
    if norm not in BALLS:
        raise InputError(f"--norm must be {', '.join(BALLS)}; it is {norm!r}")
    if options.around is None or options.eps is None:
        raise InputError("a ball needs its radius: add --eps E")
    centers = read_inputs(options.around, loaded.input_shape).to(loaded.dtype)
    return BALLS[norm](centers, options.eps, bounds=options.bounds)
