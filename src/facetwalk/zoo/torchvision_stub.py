"""Lets onnx2torch be imported where torchvision is missing or does not load.

onnx2torch imports torchvision for two object-detection operators that ReLU networks do not
have. torchvision's wheel does not load beside every build of torch.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from types import ModuleType
from typing import NoReturn

from facetwalk.types import ModelError


@contextmanager
def torchvision_or_stub() -> Iterator[None]:
    """Within this context torchvision can be imported; a stub is gone again afterwards."""
    before = _torchvision_modules()
    loads = _torchvision_loads()
    if not loads:
        _replace_torchvision_modules(_stub())
    try:
        yield
    finally:
        if not loads:
            _replace_torchvision_modules(before)


def _torchvision_loads() -> bool:
    try:
        import torchvision.ops  # noqa: F401  # pyright: ignore[reportMissingImports]
    except Exception:  # a wheel for another torch fails with RuntimeError or OSError
        return False
    return True


def _torchvision_modules() -> dict[str, ModuleType]:
    return {
        name: module
        for name, module in sys.modules.items()
        if name == "torchvision" or name.startswith("torchvision.")
    }


def _replace_torchvision_modules(modules: dict[str, ModuleType]) -> None:
    for name in _torchvision_modules():
        del sys.modules[name]
    sys.modules.update(modules)


def _stub() -> dict[str, ModuleType]:
    package = module_from_spec(ModuleSpec("torchvision", None))
    ops = module_from_spec(ModuleSpec("torchvision.ops", None))
    vars(ops).update(dict.fromkeys(("nms", "box_convert", "roi_align"), _needs_torchvision))
    vars(package).update(ops=ops)
    return {"torchvision": package, "torchvision.ops": ops}


def _needs_torchvision(*args: object, **kwargs: object) -> NoReturn:
    raise ModelError("this network needs torchvision, which cannot be imported here")
