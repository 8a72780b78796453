"""Turns what a user writes on the command line into a network."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import torch
from torch import nn

from facetwalk.messages import reason
from facetwalk.types import InputError, ModelError
from facetwalk.zoo.digits import DigitsNet, digits_net
from facetwalk.zoo.loaded import Loaded
from facetwalk.zoo.onnx import load_onnx
from facetwalk.zoo.random_networks import random_network
from facetwalk.zoo.shipped import BY_NAME, shipped_net
from facetwalk.zoo.trained import load_trained

_RANDOM = "random:"


def load_model(spec: str | Path, seed: int = 0, shape: tuple[int, ...] | None = None) -> Loaded:
    """The network that `spec` names, in eval mode, with the shape of one input.

    `spec` is `digits`, the name of another network that the package ships (`mnist-cnn-0.3`, see
    `shipped`), `random:10,64,64,1` (drawn with `seed`), the path of an `.onnx` file or of
    a `.safetensors` file that `facetwalk train` wrote, or `package.module:function` or
    `path/to/file.py:function`, where the function takes no arguments and returns a torch module.
    `shape` is needed only where the network does not
    tell the shape of its input itself.

    >>> load_model("random:10,64,64,1", seed=3).input_shape
    (10,)
    """
    if shape is not None:
        shape = _checked_shape(shape, "the given input shape")
    if not isinstance(spec, str | Path):
        raise InputError(f"a network is named by a text or a path, not by a {type(spec).__name__}")
    spec = str(spec)
    if spec == "digits":
        loaded = Loaded(digits_net(), DigitsNet.input_shape, spec)
    elif spec in BY_NAME:
        net = shipped_net(spec)
        loaded = Loaded(net, _input_shape(net, spec, None), spec)
    elif spec.startswith(_RANDOM):
        sizes = _sizes(spec)
        loaded = Loaded(random_network(sizes, seed), (sizes[0],), spec)
    elif spec.lower().endswith(".onnx"):
        loaded = load_onnx(spec)
    elif spec.lower().endswith(".safetensors"):
        loaded = load_trained(spec)
    elif ":" in spec:
        loaded = _from_function(spec, shape)
    else:
        raise InputError(
            f"{spec!r} names no network: use digits, {', '.join(BY_NAME)}, random:10,64,64,1, "
            "path/to/file.onnx, path/to/file.safetensors, package.module:function or "
            "path/to/file.py:function"
        )
    if shape not in (None, loaded.input_shape):
        raise InputError(
            f"{spec} takes inputs of shape {loaded.input_shape}, not {shape} as given: "
            "leave the shape out"
        )
    return loaded


def _checked_shape(shape: object, what: str) -> tuple[int, ...]:
    if (
        not isinstance(shape, (tuple, list))
        or not shape
        or not all(isinstance(size, int) and size > 0 for size in shape)
    ):
        raise InputError(f"{what} must be one or more positive integers, not {shape!r}")
    return tuple(shape)


def _sizes(spec: str) -> list[int]:
    try:
        return [int(size) for size in spec.removeprefix(_RANDOM).split(",")]
    except ValueError as error:
        raise InputError(
            f"the layer sizes in {spec!r} must be integers: write them as random:10,64,64,1"
        ) from error


def _from_function(spec: str, shape: tuple[int, ...] | None) -> Loaded:
    model = _called(spec).eval()
    shape = _input_shape(model, spec, shape)
    parameter = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0))
    batch = torch.zeros(2, *shape, dtype=parameter.dtype, device=parameter.device)
    try:
        with torch.no_grad():
            model(batch)
    except Exception as error:
        raise InputError(
            f"{spec} cannot take a batch of inputs of shape {shape} ({reason(error)}): "
            "pass the right one with --shape"
        ) from error
    return Loaded(model, shape, spec, parameter.dtype)


def _called(spec: str) -> nn.Module:
    """What the function that `spec` names returns."""
    place, _, name = spec.rpartition(":")
    try:
        is_file = place.endswith(".py")
        module = _run_file(Path(place)) if is_file else importlib.import_module(place)
    except (Exception, SystemExit) as error:
        raise InputError(f"{place} cannot be imported: {reason(error)}") from error
    function = getattr(module, name, None)
    if not callable(function):
        raise InputError(f"{place} has no function named {name!r}")
    try:
        model = function()
    except (Exception, SystemExit) as error:
        raise InputError(
            f"{spec}, called without arguments, failed with {reason(error)}"
        ) from error
    if not isinstance(model, nn.Module):
        raise InputError(f"{spec} returned a {type(model).__name__}, not a torch.nn.Module")
    if any(isinstance(part, torch.jit.ScriptModule) for part in model.modules()):
        raise ModelError(
            f"{spec} returned a TorchScript module, whose ReLUs cannot be seen: "
            "return the Python module it was made from"
        )
    return model


def _run_file(path: Path) -> ModuleType:
    module = ModuleType(str(path.resolve()))
    module.__file__ = str(path)
    code = compile(path.read_bytes(), path, "exec")
    sys.modules[module.__name__] = module  # dataclasses look their module up by name
    exec(code, module.__dict__)
    return module


def _input_shape(model: nn.Module, spec: str, given: tuple[int, ...] | None) -> tuple[int, ...]:
    declared = getattr(model, "input_shape", None)
    if declared is not None:
        return _checked_shape(declared, f"the input_shape attribute of {spec}")
    if given is not None:
        return given
    first = next(part for part in model.modules() if not list(part.children()))
    if isinstance(first, nn.Linear):
        return (first.in_features,)
    raise InputError(f"{spec} does not tell the shape of its input: pass it with --shape")
