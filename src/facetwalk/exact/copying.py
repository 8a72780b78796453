"""Networks in float64."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from facetwalk.messages import reason
from facetwalk.models import require_eval
from facetwalk.types import ModelError


def in_float64(model: nn.Module) -> nn.Module:
    """A copy of a network in float64 that asks for no gradients of its weights.

    In it parts that `torch.compile` made are the modules they were made from, and tensors that were
    computed from weights, as weight norm leaves them on its layers, are plain ones.

    >>> twin = in_float64(nn.Linear(3, 2).eval())
    >>> twin.weight.dtype, twin.weight.requires_grad
    (torch.float64, False)
    """
    require_eval(model)
    if any(isinstance(part, torch.jit.ScriptModule) for part in model.modules()):
        raise ModelError(
            "the network is (or holds) a TorchScript module, which nothing can be proven of: pass "
            "the Python module it was made from"
        )
    copies: dict[int, Any] = {id(tensor): tensor.detach().clone() for tensor in _computed(model)}
    try:
        for part in reversed(list(model.modules())):
            if hasattr(part, "_orig_mod"):
                copies[id(part)] = copy.deepcopy(part._orig_mod, copies)
        twin = copy.deepcopy(model, copies)
    except Exception as error:
        raise ModelError(
            f"the network cannot be copied, to be taken in float64: {reason(error)}"
        ) from error
    return twin.double().requires_grad_(False)


def device_of(model: nn.Module) -> torch.device:
    """Where the network's weights are, or the CPU for a network without any."""
    first = next((t for t in (*model.parameters(), *model.buffers())), torch.empty(0))
    return first.device


def _computed(model: nn.Module) -> Iterator[Tensor]:
    """Tensors of a network's parts that autograd knows an origin of; torch does not copy them."""
    for part in model.modules():
        for value in (*vars(part).values(), *part.buffers(recurse=False)):
            if isinstance(value, Tensor) and not value.is_leaf:
                yield value
