"""Puts the weights of a public checkpoint into a network, or says why they do not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn

from facetwalk.types import InputError, MissingExtraError

Network = TypeVar("Network", bound=nn.Module)

_COUNTER = "num_batches_tracked"
"""Batch norm's count of batches: no output depends on it, and old checkpoints do not have it."""


def from_safetensors(content: bytes, what: str) -> dict[str, Tensor]:
    """The weights in a `.safetensors` file; without the extra, `what` is what needs it."""
    try:
        from safetensors.torch import load
    except ImportError as error:
        raise MissingExtraError(what, "demo") from error
    return load(content)


def load_weights(net: Network, weights: Mapping[str, Tensor]) -> Network:
    """`net` with these weights, in eval mode; where they do not fit, it is left as it was.

    `weights` is a state dict, such as `torch.load(file, "cpu", weights_only=True)` returns. The
    `module` that `DataParallel` puts into names is ignored, and numbers take the precision of
    `net`.

    >>> import torch
    >>> load_weights(nn.Linear(2, 1), nn.Linear(2, 1).state_dict()).training
    False
    >>> load_weights(nn.Linear(2, 1), {"weight": torch.ones(1, 2)})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    facetwalk.types.InputError: the weights do not fit this Linear (missing: bias): pass the ...
    """
    if not isinstance(weights, Mapping) or not all(isinstance(name, str) for name in weights):
        raise InputError(
            "the weights must be a state dict, tensors by name, as torch.load(file) or "
            f"module.state_dict() gives; they are a {type(weights).__name__}"
        )
    own = net.state_dict()
    weights = {
        name if name in own else _without_wrappers(name): value for name, value in weights.items()
    }
    missing = [name for name in own if name not in weights and not name.endswith(_COUNTER)]
    unexpected = [name for name in weights if name not in own]
    different = [
        f"{name} is {misfit}"
        for name, value in weights.items()
        if name in own and (misfit := _misfit(value, own[name]))
    ]
    problems = {"different": different, "missing": missing, "unexpected": unexpected}
    found = "; ".join(f"{kind}: {_listed(names)}" for kind, names in problems.items() if names)
    if found:
        raise InputError(
            f"the weights do not fit this {type(net).__name__} ({found}): "
            "pass the state dict of a network that was made with the same arguments"
        )
    net.load_state_dict(weights)
    return net.eval()


def _misfit(value: object, own: Tensor) -> str | None:
    """What a value is that cannot be copied into a tensor of the network; None if it can be."""
    if not isinstance(value, Tensor):
        return f"a {type(value).__name__}, not {tuple(own.shape)}"
    if value.shape != own.shape:
        return f"{tuple(value.shape)}, not {tuple(own.shape)}"
    if own.is_floating_point() and not value.is_floating_point():
        return f"{value.dtype}, not {own.dtype}"
    if value.layout != torch.strided or (value.is_meta and not own.is_meta):
        return f"{value.layout} on {value.device}, not plain numbers"
    return None


def _without_wrappers(name: str) -> str:
    return ".".join(part for part in name.split(".") if part != "module")


def _listed(names: Sequence[str]) -> str:
    return f"{names[0]}, and {len(names) - 1} more" if len(names) > 1 else names[0]
