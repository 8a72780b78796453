"""Operations of torch, and how each is done again the fastest, in the same places."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

Call = Callable[[], object]

_EMPTY = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}
_COPIES = {"clone", "_to_copy", "copy_"}
_SMALL = 1 << 14
"""Tensors with so many entries or fewer are NumPy's: it is the faster, the fewer there are."""
_UFUNCS = {
    "add": np.add,
    "sub": np.subtract,
    "rsub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "reciprocal": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "clamp_min": np.maximum,
    "clamp_max": np.minimum,
    "le": np.less_equal,
    "lt": np.less,
    "ge": np.greater_equal,
    "gt": np.greater,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "rshift": np.right_shift,
}
"""Functions that are rounded as torch's are, entry by entry."""
_REAL = {"div", "reciprocal"}
"""Those that make other numbers of whole ones."""


@dataclass(frozen=True)
class Operation:
    """One call of an operator, with the tensors that it read and wrote."""

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any
    changed: list[Tensor]
    """Those of its arguments that it writes into."""

    @classmethod
    def of(cls, function: Any, args: tuple[Any, ...], kwargs: Any, result: Any) -> Operation:
        changed: list[Tensor] = []
        for place, argument in enumerate(function._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                given = args[place] if place < len(args) else kwargs.get(argument.name)
                changed += tensors_in(given)
        return cls(function, args, kwargs, result, changed)

    @property
    def name(self) -> str:
        return self.function._schema.name.partition("::")[2]

    @property
    def inputs(self) -> list[Tensor]:
        return tensors_in((self.args, self.kwargs))

    @property
    def outputs(self) -> list[Tensor]:
        return tensors_in(self.result)

    @property
    def is_view(self) -> bool:
        """Whether what it gives lies where its arguments do, and it writes nothing there."""
        return not self.changed and places(self.outputs) <= places(self.inputs)

    @property
    def computes(self) -> bool:
        return not self.is_view and self.name not in _EMPTY

    def map(self, function: Callable[[Tensor], Tensor]) -> Operation:
        trees = (self.args, self.kwargs, self.result, self.changed)
        mapped = (tree_map(lambda x: function(x) if isinstance(x, Tensor) else x, t) for t in trees)
        return Operation(self.function, *mapped)


def tensors_in(tree: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]


def places(tensors: Iterable[Tensor]) -> set[int]:
    return {tensor.untyped_storage().data_ptr() for tensor in tensors}


def again(operations: list[Operation], calls: list[Call] | None) -> list[Call]:
    """Do operations again: by `calls`, which the first time returned."""
    with np.errstate(all="ignore"):
        if calls is None:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                return [_first_that_works(each) for each in operations if each.computes]
        for call in calls:
            call()
        return calls


def _first_that_works(operation: Operation) -> Call:
    """Do an operation, and return what has done it."""
    for call in _forms(operation):
        try:
            call()
        except Exception:  # there is no such form, or it warns
            continue
        return call
    raise NotImplementedError(f"{operation.function} cannot be done again")


def _forms(operation: Operation) -> Iterable[Call]:
    """Ways to do an operation again, the fastest first."""
    args, kwargs, name = operation.args, operation.kwargs, operation.name
    target = (operation.changed or operation.outputs)[0]
    arrays = _in_numpy(operation, target)
    if arrays is not None:
        yield arrays
    if name in _COPIES:
        yield partial(target.copy_, args[-1] if name == "copy_" else args[0])
    family, _, rest = name.partition("_")
    quick = getattr(torch.linalg, rest, None) if family == "linalg" else getattr(torch, name, None)
    if operation.changed:
        method = getattr(Tensor, name, None) if name.endswith("_") else quick
        if method is not None:
            yield partial(method, *args, **kwargs)
        yield partial(operation.function, *args, **kwargs)
        return
    into = _out_form(operation.function)
    if into is not None:
        names = [argument.name for argument in into._schema.arguments if _is_output(argument)]
        given = dict(zip(names, operation.outputs, strict=True))
        if quick is not None and names == ["out"]:
            yield partial(quick, *args, **kwargs, **given)
        yield partial(into, *args, **kwargs, **given)
    for function in filter(None, (quick, operation.function)):
        yield partial(_copied, operation.outputs, partial(function, *args, **kwargs))


def _in_numpy(operation: Operation, target: Tensor) -> Call | None:
    """With arrays on the memory of small tensors, where it is an exact operation on each entry."""
    inputs, args = operation.inputs, operation.args
    if max(each.numel() for each in (*inputs, target)) > _SMALL:
        return None
    name, out = operation.name.strip("_"), target.numpy()
    if name in ("clone", "to_copy", "copy"):
        source = args[1] if name == "copy" else args[0]
        return partial(np.copyto, out, source.numpy())
    dtype = _computed_in(inputs)
    if dtype is None or not operation.kwargs.keys() <= {"out", "grad_input"}:
        return None
    if name in ("cat", "stack"):
        parts, dim = args[0], args[1] if len(args) > 1 else 0
        rows = [(each.unsqueeze(dim) if name == "stack" else each).numpy() for each in parts]
        return partial(np.concatenate, rows, dim, out=out)
    if name not in {*_UFUNCS, *_IN_PARTS, "pow"}:
        return None
    dtype = target.dtype if name in ("where", "masked_fill") else dtype
    is_whole = not dtype.is_floating_point
    if is_whole and (name in _REAL or not all(_fits(each, dtype) for each in args)):
        return None
    arrays: list[Any] = [None if each is None else _array(each, dtype) for each in args]
    if name in _IN_PARTS:
        return partial(_IN_PARTS[name], out, np.empty_like(out), *arrays)
    if name == "pow":
        return partial(np.square, arrays[0], out=out) if args[1] == 2 else None
    if name == "rsub":
        arrays = arrays[1::-1]
    if name == "reciprocal":
        arrays = [np.ones_like(arrays[0]), arrays[0]]
    quick = partial(_UFUNCS[name], *arrays, out=out)
    if all(each.ndim for each in inputs) or not any(each.ndim for each in inputs):
        return quick
    kinds = (*[_array(0, dtype).dtype] * 2, out.dtype)
    return partial(quick, signature=kinds, casting="unsafe")


def _computed_in(inputs: list[Tensor]) -> torch.dtype | None:
    """The type in which torch and NumPy alike work on tensors, if there is one.

    A tensor without dimensions is a number: the others have the say.
    """
    wide = [each for each in inputs if each.ndim] or inputs
    kinds = {each.dtype for each in wide if each.dtype != torch.bool} or {torch.bool}
    dtype = kinds.pop()
    is_real = any(each.is_floating_point() for each in inputs)
    return None if kinds or (is_real and not dtype.is_floating_point) else dtype


def _fits(value: Any, dtype: torch.dtype) -> bool:
    """Whether an argument is a tensor, or a number of a type of whole numbers."""
    if isinstance(value, Tensor):
        return True
    if type(value) is not int or dtype == torch.bool:
        return False
    return torch.iinfo(dtype).min <= value <= torch.iinfo(dtype).max


def _array(value: Any, dtype: torch.dtype) -> np.ndarray:
    return (value if isinstance(value, Tensor) else torch.tensor(value, dtype=dtype)).numpy()


def _where(out: Any, spare: Any, condition: Any, one: Any, other: Any) -> None:
    np.copyto(out, other)
    np.copyto(out, one, where=condition)


def _masked_fill(out: Any, spare: Any, values: Any, mask: Any, value: Any) -> None:
    np.copyto(out, values)
    np.copyto(out, value, where=mask)


def _threshold_backward(out: Any, spare: Any, gradient: Any, there: Any, threshold: Any) -> None:
    blocked = there <= threshold
    np.copyto(out, gradient)
    np.putmask(out, blocked, 0)


def _sigmoid_backward(out: Any, spare: Any, gradient: Any, sigmoid: Any) -> None:
    np.subtract(1, sigmoid, out=spare)
    np.multiply(gradient, spare, out=spare)
    np.multiply(spare, sigmoid, out=out)


def _clamp(out: Any, spare: Any, values: Any, low: Any = None, high: Any = None) -> None:
    if low is not None:
        values = np.maximum(values, low, out=out)
    if high is not None:
        np.minimum(values, high, out=out)


_IN_PARTS: dict[str, Callable[..., None]] = {
    "where": _where,
    "masked_fill": _masked_fill,
    "threshold_backward": _threshold_backward,
    "sigmoid_backward": _sigmoid_backward,
    "clamp": _clamp,
}
"""Functions of some of NumPy's, `(result, memory like it to work in, *arguments)`."""


def _copied(outputs: list[Tensor], work: Callable[[], Any]) -> None:
    for old, new in zip(outputs, tensors_in(work()), strict=True):
        old.copy_(new)


def _out_form(function: Any) -> Any:
    """The overload with a kernel of its own that takes tensors to write into, beside the same
    arguments."""
    wanted = [(argument.name, str(argument.type)) for argument in function._schema.arguments]
    for overload in function.overloadpacket.overloads():
        form = getattr(function.overloadpacket, overload)
        arguments = form._schema.arguments
        others = [(each.name, str(each.type)) for each in arguments if not _is_output(each)]
        if len(others) < len(arguments) and wanted == others:
            return None if torch.Tag.generated in form.tags else form
    return None


def _is_output(argument: Any) -> bool:
    return argument.kwarg_only and argument.alias_info is not None and argument.alias_info.is_write
