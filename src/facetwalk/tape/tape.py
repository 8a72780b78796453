"""Work on a CPU noted once as a list of operations, and done again on the same tensors.

A small network spends its time between the kernels: in Python, in autograd, in tensors that are
made and dropped. A tape is to a CPU what a CUDA graph is to a GPU: it has the kernels alone, each
writes where it wrote the first time, and views are there already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from facetwalk.tape.operation import Operation, again, places

_MOST_BYTES = 1 << 23
"""What a tape's tensors may take; with more of them the time goes into the kernels anyway."""
_BYTES_OF_ONE_THREAD = 1 << 20
"""With so many of them or fewer, threads wait for each other longer than they work."""

_REFUSED = {
    torch.Tag.data_dependent_output,
    torch.Tag.dynamic_output_shape,
    torch.Tag.nondeterministic_seeded,
}
_WAYS_OUT = {Tensor.numpy, Tensor.tolist, Tensor.__array__}
_BLIND = {"zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full"}
"""These look at the shape of a tensor, and not at what it holds."""


class NotOnTapeError(Exception):
    """Work that cannot be noted: it asks for values, draws random numbers or is too large."""


class Tape:
    """What `work` does, noted while it is done.

    `changing` are the tensors that differ from one time to the next: the work's own, which it
    writes into, and those that the caller does. What depends on none of them is done by `begin`,
    and what depends on no tensor at all is never done again.
    """

    def __init__(self, work: Callable[[], object], changing: Iterable[Tensor]) -> None:
        noted = _Noting()
        with _NoWayOut(), noted:
            work()
        alone: dict[int, Tensor] = {}  # without the graphs of autograd
        operations = [each.map(partial(_detached, alone)) for each in noted.operations]
        outside, variable = _outside(operations), places(changing)
        written = places(t for each in operations for t in each.changed)
        if written & outside - variable:
            raise NotOnTapeError("it changes tensors that are not its own")
        steady = outside - variable
        constant: set[int] = set()
        self.once: list[Operation] = []
        self.always: list[Operation] = []
        """With the views between them."""
        for each in _needed(operations, variable):
            seen, made = places(each.inputs), places(each.outputs)
            if made & written:
                self.always.append(each)
            elif each.name in _BLIND or seen <= constant:
                constant |= made
            elif seen <= steady | constant:
                self.once.append(each)
                steady |= made
            else:
                self.always.append(each)
        self._once = self._always = None
        self._in_one_thread = noted.bytes <= _BYTES_OF_ONE_THREAD

    def begin(self) -> None:
        """Take in how everything is now that is not `changing`."""
        with self.threads():
            self._once = again(self.once, self._once)

    def replay(self) -> None:
        """Do the work again."""
        with self.threads():
            self._always = again(self.always, self._always)

    @contextmanager
    def threads(self) -> Iterator[None]:
        """Within this context torch has as many threads as are good for this work."""
        before = torch.get_num_threads()
        torch.set_num_threads(1 if self._in_one_thread else before)
        try:
            yield
        finally:
            torch.set_num_threads(before)


class _Noting(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.operations: list[Operation] = []
        self.bytes = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if _REFUSED.intersection(func.tags) and not _picks_by_number(func, args):
            raise NotOnTapeError(f"{func} depends on more than its arguments say")
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        noted = Operation.of(func, args, kwargs, result)
        self.operations.append(noted)
        if not noted.changed and not noted.is_view:
            self.bytes += sum(t.untyped_storage().nbytes() for t in noted.outputs)
            if self.bytes > _MOST_BYTES:
                raise NotOnTapeError("its tensors are too large")
        return result


class _NoWayOut(TorchFunctionMode):
    """Within this context tensors cannot become values of Python that no operation shows."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func in _WAYS_OUT:
            raise NotOnTapeError(f"{func.__name__} leaves torch")
        return func(*args, **(kwargs or {}))


def _picks_by_number(function: Any, args: tuple[Any, ...]) -> bool:
    """Whether entries are picked whose number is known, and not those where something holds."""
    if function is not torch.ops.aten.index.Tensor:
        return False
    return all(each is None or each.dtype == torch.int64 for each in args[1])


def _detached(known: dict[int, Tensor], tensor: Tensor) -> Tensor:
    return known.setdefault(id(tensor), tensor.detach())


def _outside(operations: list[Operation]) -> set[int]:
    """Places that were there before."""
    found: set[int] = set()
    made: set[int] = set()
    for each in operations:
        found |= places(each.inputs) - made
        made |= places(each.outputs) - found
    return found


def _needed(operations: list[Operation], where: set[int]) -> list[Operation]:
    """Those without which something else would stand in these places afterwards."""
    wanted, kept = set(where), []
    for each in reversed(operations):
        if wanted & places([*each.outputs, *each.changed]):
            wanted |= places(each.inputs)
            kept.append(each)
    return kept[::-1]
