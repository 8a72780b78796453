"""Makes the feasible set from what the options say: bounds, a radius, a norm."""

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
    check_bounds(options.bounds)
    centers = read_inputs(options.around, loaded.input_shape).to(loaded.dtype)
    return BALLS[norm](centers, options.eps, bounds=options.bounds)


def check_bounds(bounds: Pair | None) -> None:
    """Refuse bounds between which there is nothing, before inputs are blamed to lie outside.

    >>> check_bounds((1, 0))
    Traceback (most recent call last):
    facetwalk.types.InputError: --bounds must be a lowest and a highest value; they are 1 and 0
    """
    if bounds is not None and not bounds[0] <= bounds[1]:
        low, high = bounds
        raise InputError(
            f"--bounds must be a lowest and a highest value; they are {low:g} and {high:g}"
        )


def fraction(text: str) -> float:
    """A number, or a quotient of two, as in 8/255; `InputError` for anything else.

    >>> fraction("8/255") == 8 / 255, fraction("0.3")
    (True, 0.3)
    """
    number, slash, divisor = text.partition("/")
    try:
        return float(number) / (float(divisor) if slash else 1)
    except (ValueError, ZeroDivisionError) as error:
        raise InputError(f"{text!r} must be a number, or two as in 8/255") from error
