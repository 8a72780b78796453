"""Loads the network that a command works on."""

from __future__ import annotations

from dataclasses import replace

import torch

from facetwalk import InputError, ModelError
from facetwalk.sites.interception import Interception
from facetwalk.zoo import Loaded, load_model


def make_model(spec: str, seed: int, shape: str | None, device: str = "cpu") -> Loaded:
    """The network of `spec` on a device; `shape` is text such as `1,28,28`."""
    check_device(device)
    loaded = load_model(spec, seed, None if shape is None else _sizes(shape))
    return replace(loaded, model=loaded.model.to(device))


def require_relus(loaded: Loaded) -> None:
    """Raise `ModelError` for a network without ReLUs, which there is nothing to say about."""
    inputs = torch.zeros(2, *loaded.input_shape, dtype=loaded.dtype)
    device = next((weight.device for weight in loaded.model.parameters()), inputs.device)
    with torch.no_grad(), Interception(lambda number, z: z.relu()) as seen:
        loaded.model(inputs.to(device))
    if not seen.count:
        raise ModelError(f"no ReLU was found in {loaded.name}: name a network that has some")


def check_device(device: str) -> None:
    """Refuse a device that is not there.

    >>> check_device("gpu")
    Traceback (most recent call last):
    facetwalk.types.InputError: --device must be cpu or cuda; it is 'gpu'
    """
    if device not in ("cpu", "cuda"):
        raise InputError(f"--device must be cpu or cuda; it is {device!r}")
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("there is no CUDA device here: use --device cpu")


def _sizes(shape: str) -> tuple[int, ...]:
    try:
        return tuple(int(size) for size in shape.split(","))
    except ValueError as error:
        raise InputError(f"--shape {shape} must be integers, as in --shape 1,28,28") from error
