"""Errors, enums and tensor aliases that every other room uses."""

from __future__ import annotations

from enum import StrEnum
from operator import index
from textwrap import shorten
from typing import TypeAlias

from torch import Tensor

PerProblem: TypeAlias = Tensor
"""A tensor of shape `(B,)`: one number for each problem of a batch."""

Inputs: TypeAlias = Tensor
"""A tensor of shape `(B, *shape)`: one network input for each problem of a batch."""


def whole_number(name: str, value: object, at_least: int | None = None) -> int:
    """`value` as an int, whichever library's whole number it is; `InputError` if it is none.

    >>> whole_number("starts", 2.5)
    Traceback (most recent call last):
    facetwalk.types.InputError: starts must be a whole number; it is 2.5
    """
    try:
        number = None if isinstance(value, bool) else index(value)  # pyright: ignore
    except TypeError:
        number = None
    limit = "" if at_least is None else f", at least {at_least}"
    if number is None or (at_least is not None and number < at_least):
        given = shorten(repr(value), 60, placeholder=" ...")
        raise InputError(f"{name} must be a whole number{limit}; it is {given}")
    return number


class FacetwalkError(Exception):
    """Base of every error that facetwalk raises on purpose."""


class InputError(FacetwalkError, ValueError):
    """Something that the caller passed cannot be used; the message says what to do."""


class ModelError(FacetwalkError, RuntimeError):
    """The network cannot be used as it is; the message says why."""


class MissingExtraError(FacetwalkError, ImportError):
    """An optional dependency is not installed; the message names the extra."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional dependency: pip install 'facetwalk[{extra}]'")
        self.what, self.extra = what, extra

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str]]:
        return MissingExtraError, (self.what, self.extra)


class DownloadError(FacetwalkError, RuntimeError):
    """A file could not be fetched from any of its sources; the message says why."""


class NotAffineWarning(UserWarning):
    """With its gates frozen the network is not affine, so hyperplanes are only local."""


class Status(StrEnum):
    """How the work on one problem ended."""

    FINISHED = "finished"
    """Every step was taken."""
    REACHED = "reached"
    """The value passed `stop_at`."""
    STOPPED = "stopped"
    """A callback asked to stop, or time was up."""
