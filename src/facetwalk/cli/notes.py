"""Turns the warning that a network is not affine into a note for the reader."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from facetwalk import NotAffineWarning


@contextmanager
def affine_notes() -> Iterator[list[str]]:
    """The texts of `NotAffineWarning`s given within, each once; others are shown as always."""
    notes: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("always", NotAffineWarning)
        show_as_always = warnings.showwarning

        def take(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
            if not issubclass(category, NotAffineWarning):
                show_as_always(message, category, *place, **more)
            elif str(message) not in notes:
                notes.append(str(message))

        warnings.showwarning = take
        yield notes
