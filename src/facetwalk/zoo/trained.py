"""Networks that `facetwalk train` wrote: weights, and beside them a record of the training."""

from __future__ import annotations

import json
from pathlib import Path

from facetwalk.messages import reason
from facetwalk.types import InputError, MissingExtraError
from facetwalk.zoo.architectures import fresh_net
from facetwalk.zoo.checkpoints import load_weights
from facetwalk.zoo.loaded import Loaded
from facetwalk.zoo.shipped import BY_NAME


def load_trained(path: Path | str) -> Loaded:
    """The network of a `.safetensors` file; the `.json` beside it names the architecture.

    >>> load_trained("nowhere/net.safetensors")
    Traceback (most recent call last):
    facetwalk.types.InputError: there is no file nowhere/net.safetensors
    """
    try:
        from safetensors.torch import load
    except ImportError as error:
        raise MissingExtraError("a trained network", "demo") from error
    path = Path(path)
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    net = fresh_net(_architecture(path.with_suffix(".json"), path))
    try:
        weights = load(path.read_bytes())
    except Exception as error:
        raise InputError(f"{path} cannot be read as weights ({reason(error)})") from error
    return Loaded(load_weights(net, weights), net.input_shape, path.stem)  # pyright: ignore[reportArgumentType]


def _architecture(record: Path, weights: Path) -> str:
    """What the record names; those of the shipped networks name only the network."""
    if not record.is_file():
        raise InputError(
            f"{weights} needs the record that facetwalk train wrote beside it: put {record} there"
        )
    try:
        training = json.loads(record.read_text())["training"]
        found = training.get("architecture") or BY_NAME[training["name"]]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(
            f"{record} does not say which architecture {weights.name} is of: put the record there "
            "that facetwalk train wrote"
        ) from error
    return str(found)
