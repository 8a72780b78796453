"""Loads the classifier that the commands about robustness work on."""

from __future__ import annotations

from facetwalk import InputError
from facetwalk.cli.model_choice import make_model
from facetwalk.zoo import Loaded

_SAVED_BY_TORCH = (".pt", ".pth")


def make_classifier(spec: str, seed: int, shape: str | None, device: str) -> Loaded:
    """As `make_model`; of a file that torch saved it says how to name what is in it.

    >>> make_classifier("digits", 0, None, "cpu").input_shape
    (1, 8, 8)
    """
    if spec.lower().endswith(_SAVED_BY_TORCH):
        raise InputError(
            f"{spec} may hold weights, but not the code of a network: write a function that makes "
            "the network and loads them into it, and name that, as in path/to/file.py:function"
        )
    return make_model(spec, seed, shape, device)
