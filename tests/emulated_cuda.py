"""An imitation of a CUDA device, for machines that have none: it shows where tensors are misplaced.

A tensor of the device holds one on the CPU, with which operators are computed. What a GPU refuses
is refused: operators on tensors of two devices, but for copies, indices from the host and numbers
(tensors without dimensions), and NumPy's view of a tensor. Kernels, streams, memory and generators
are not imitated, and nothing can be recorded. A network that moves gets new parameters:
optimisers that were made before do not know them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
import torch
from emulated_engine import run_backward
from torch import Tensor
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

aten = torch.ops.aten
_CUDA, _CPU = torch.device("cuda:0"), torch.device("cpu")
_COPIES = {aten.copy_.default, aten._to_copy.default}
_INDEXES = {
    *(aten.index.Tensor, aten.index_put.default, aten.index_put_.default),
    *(aten._index_put_impl_.default, aten._unsafe_index.Tensor),
}
_TAKE_NUMBERS = {aten.fill.Tensor, aten.fill_.Tensor, *_INDEXES}
"""Not computed entry by entry, and yet they take a number from the host."""
_BELOW = (aten.empty_strided.default, aten.empty.memory_format, aten.copy_.default)
"""What torch calls beneath Python when it makes a tensor of a list."""
_MEMORY = 1 << 30

_LIBRARY = Path(torch.__file__).parent / "lib" / "libc10.so"
_GUARDS, _OF_CUDA = "_ZN3c104impl26device_guard_impl_registryE", 1
"""Where torch keeps the guards of its devices, and the place of this one."""

_TORCH = "2.13"
"""Made of private parts of this version."""

needs_no_gpu = pytest.mark.skipif(
    torch.cuda.is_available() or not _LIBRARY.exists() or not torch.__version__.startswith(_TORCH),
    reason=f"a GPU is imitated where there is none, by torch {_TORCH} for Linux",
)


class OnDevice(Tensor):
    """A tensor of the device."""

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> OnDevice:
        form = {"strides": inner.stride(), "storage_offset": inner.storage_offset()}
        tensor = Tensor._make_wrapper_subclass(
            cls, inner.shape, dtype=inner.dtype, device=_CUDA, **form
        )
        tensor.inner = inner
        return tensor

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        return _computed(func, args, kwargs or {})

    def data_ptr(self) -> int:
        return self.inner.data_ptr()

    def untyped_storage(self) -> Any:
        return self.inner.untyped_storage()

    def numpy(self, *, force: bool = False) -> Any:
        if force:
            return self.detach().cpu().numpy()
        raise TypeError("can't convert cuda:0 device type tensor to numpy: use Tensor.cpu() first")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self.numpy()

    def tolist(self) -> Any:
        return self.inner.tolist()

    def __format__(self, spec: str) -> str:
        return format(self.inner, spec)

    def __repr__(self, **kwargs: Any) -> str:
        return f"{self.inner!r} on the device"

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        copied = self.detach().clone().requires_grad_(self.requires_grad)
        copied.__dict__.update({**self.__dict__, "inner": copied.inner})
        return memo.setdefault(id(self), copied)


class _Device(TorchDispatchMode):
    """Makes what is asked for on the device."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: nothing is compiled here, and torch would import its compiler to leave this alone."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        return _computed(func, args, kwargs or {})


def _computed(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    there = {id(tensor.inner): tensor for tensor in tensors if isinstance(tensor, OnDevice)}
    asked = kwargs.get("device")
    to_device = bool(there) if asked is None else asked.type == "cuda"
    if not there and not to_device:
        return func(*args, **kwargs)
    if there:
        _require_one_device(func, args, tensors)
    if to_device and kwargs.get("generator") is not None:
        raise RuntimeError("Expected a 'cuda' device type for generator but found 'cpu'")
    given = {**kwargs, "device": _CPU} if to_device and asked is not None else kwargs
    inner_args, inner_kwargs = tree_map(_inner, (args, given))
    if func is aten._efficientzerotensor.default:  # has no memory, which its wrapper would hide
        func = aten.zeros.default
    result = func(*inner_args, **inner_kwargs)
    if torch.Tag.inplace_view in func.tags:
        with no_dispatch():  # the wrapper's own shape
            return func(*args, **kwargs)
    if not to_device or (args and result is args[0]):
        return result
    return tree_map(partial(_outer, there), result)


def _require_one_device(func: Any, args: tuple[Any, ...], tensors: list[Tensor]) -> None:
    on_host = [tensor for tensor in tensors if not isinstance(tensor, OnDevice)]
    if func in _INDEXES and isinstance(args[0], OnDevice):
        indices = {id(index) for index in args[1]}
        on_host = [tensor for tensor in on_host if id(tensor) not in indices]
    if not on_host or func in _COPIES:
        return
    takes_numbers = torch.Tag.pointwise in func.tags or func in _TAKE_NUMBERS
    is_number = len(on_host) == 1 and on_host[0].ndim == 0
    is_written = func._schema.is_mutable and on_host[0] is tensors[0]
    if not (takes_numbers and is_number) or is_written:
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, cuda:0 "
            f"and cpu! ({func})"
        )


def _inner(leaf: Any) -> Any:
    return leaf.inner if isinstance(leaf, OnDevice) else leaf


def _outer(known: dict[int, OnDevice], leaf: Any) -> Any:
    if not isinstance(leaf, Tensor):
        return leaf
    return known[id(leaf)] if id(leaf) in known else OnDevice(leaf)


class _NoGraph:
    def capture_begin(self, pool: object) -> None:
        raise RuntimeError("nothing can be recorded")


_STREAM = SimpleNamespace(wait_stream=lambda other: None)
_IN_TORCH_CUDA = {
    "_lazy_init": lambda: None,
    "is_available": lambda: True,
    "is_bf16_supported": lambda *_: True,
    "current_device": lambda: 0,
    "get_rng_state": lambda *_: torch.get_rng_state(),
    "set_rng_state": lambda *_: None,
    "mem_get_info": lambda *_: (_MEMORY, _MEMORY),
    "memory_reserved": lambda *_: 0,
    "memory_allocated": lambda *_: 0,
    "empty_cache": lambda: None,
    "synchronize": lambda *_: None,
    "current_stream": lambda *_: _STREAM,
    "stream": lambda _: nullcontext(),
    "Stream": lambda *_: _STREAM,
    "CUDAGraph": _NoGraph,
    "graph_pool_handle": lambda: None,
}


@contextmanager
def emulated_cuda() -> Iterator[None]:
    """Within this context there is a device "cuda"."""
    overwrites = torch.__future__.get_overwrite_module_params_on_conversion()
    kernels = torch.library.Library("aten", "IMPL")
    with ExitStack() as stack:
        for name, imitation in _IN_TORCH_CUDA.items():
            stack.enter_context(patch.object(torch.cuda, name, imitation))
        stack.enter_context(patch.object(torch.autograd, "_engine_run_backward", run_backward))
        torch.__future__.set_overwrite_module_params_on_conversion(True)
        stack.callback(torch.__future__.set_overwrite_module_params_on_conversion, overwrites)
        stack.callback(kernels._destroy)
        for operator in _BELOW:
            kernels.impl(operator, partial(_beneath, operator), "CUDA")
        stack.enter_context(_guarded())
        stack.enter_context(_Device())
        yield


def _beneath(operator: Any, *args: Any, **kwargs: Any) -> Any:
    return _computed(operator, args, kwargs)


@contextmanager
def _guarded() -> Iterator[None]:
    """torch's guard that does nothing guards the device, as for its own imitations.

    torch puts it in the place of one that knows of no device. Builds without CUDA have none at all:
    so there is one first, all methods of which return zero.
    """
    guards = (ctypes.c_void_p * (_OF_CUDA + 1)).in_dll(ctypes.CDLL(str(_LIBRARY)), _GUARDS)
    before = guards[_OF_CUDA]
    zero = ctypes.CFUNCTYPE(ctypes.c_int)(int)
    methods = (ctypes.c_void_p * 64)(*[ctypes.cast(zero, ctypes.c_void_p).value] * 64)
    guard = ctypes.c_void_p(ctypes.addressof(methods))
    guards[_OF_CUDA] = ctypes.addressof(guard)
    torch._C._ensureCUDADeviceGuardSet()
    try:
        yield
    finally:
        guards[_OF_CUDA] = before
