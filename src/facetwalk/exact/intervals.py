"""Interval arithmetic: bounds of a hinge or of the outputs by one pass through the network.

To support another operation, add its name below; one that is not known leaves everything open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from facetwalk.exact.graph import Graph
from facetwalk.exact.rounding import ROUNDING

_MOVES = {
    *("view", "_unsafe_view", "_reshape_alias", "alias", "clone", "detach"),
    *("permute", "transpose", "t", "squeeze", "unsqueeze", "expand", "repeat", "flip", "roll"),
    *("slice", "select", "split", "split_with_sizes", "unbind", "index", "index_select", "gather"),
    *("_to_copy",),
}
"""They only put entries elsewhere; a view of a tensor has a view of its radius."""

_SUMS = {
    *("add", "mul", "div", "mm", "bmm", "mv", "addmm", "baddbmm", "convolution"),
    *("copy", "positive"),
    *("sum", "mean", "cat", "stack", "constant_pad_nd", "avg_pool2d"),
    *("_adaptive_avg_pool2d", "mkldnn_adaptive_avg_pool2d"),
    *("native_batch_norm", "cudnn_batch_norm"),
}
"""They add up products of what depends on the input with numbers that do not."""

_WITHOUT_SIGN = {"sub": "add", "rsub": "add", "neg": "positive"}
"""What is left of an operation where every term counts with its absolute value."""

_CONSTANTS = {
    *("new_empty", "new_full", "new_ones", "new_zeros"),
    *("empty_like", "full_like", "ones_like", "zeros_like"),
}
"""What they give depends on a tensor's shape alone."""


_OPERANDS = ("Tensor", "number")
"""Types, in torch's own words, of arguments that a number may be given for to be reckoned with."""


class _UnknownError(Exception):
    """Ends the pass at an operation that is not known."""


def interval_bounds(
    graph: Graph,
    low: Tensor,
    high: Tensor,
    known: Sequence[tuple[Tensor, Tensor]],
    position: int,
) -> tuple[Tensor, Tensor]:
    """Bounds `(width,)` on a site's pre-activation, or on the outputs at -1.

    The box is from `low` to `high`, each `(inputs,)`; `known` are bounds of all earlier sites.
    What is not known, because of an operation or an overflow, is between infinities.

    >>> from torch import nn
    >>> net = nn.Sequential(nn.Linear(2, 1, bias=False), nn.ReLU()).eval()
    >>> _ = net[0].weight.data.copy_(torch.tensor([[1.0, -2.0]]))
    >>> one = torch.ones(2, dtype=torch.float64)
    >>> low, high = interval_bounds(Graph.of(net, (2,)), -one, one, [], 0)
    >>> round(low.item(), 6), round(high.item(), 6)
    (-3.0, 3.0)
    """
    radii = _Radii()

    def between(low: Tensor, high: Tensor) -> Tensor:
        middle = (low + high) / 2
        radii.note(middle, (high - low) / 2)
        return middle

    def hinge(site: int, _: Tensor) -> Tensor:
        below, above = known[site]
        return between(below.clamp(min=0)[None], above.clamp(min=0)[None])

    with torch.no_grad():
        x = between(low.view(1, *graph.shape), high.view(1, *graph.shape))
        try:
            with radii:
                z = graph.maps(x, hinge, position)[-1]
        except _UnknownError:
            width = graph.outputs if position == -1 else graph.widths[position]
            return low.new_full((width,), -math.inf), low.new_full((width,), math.inf)
        radius = radii.of(z)
        radius = radius + ROUNDING * (z.abs() + radius)
        below, above = (z - radius).squeeze(0), (z + radius).squeeze(0)
        return below.where(~below.isnan(), -math.inf), above.where(~above.isnan(), math.inf)


class _Radii(TorchDispatchMode):
    """Notes of every tensor that depends on the input how far it may be from its value.

    An affine operation takes radii to radii with absolute values in the place of its numbers.
    """

    def __init__(self) -> None:
        super().__init__()
        self._noted: dict[int, tuple[Tensor, Tensor]] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: nothing is compiled here, and torch would import its compiler to leave this alone."""
        return False

    def note(self, tensor: Tensor, radius: Tensor) -> None:
        self._noted[id(tensor)] = tensor, radius  # a tensor that is kept keeps its id

    def of(self, tensor: Tensor) -> Tensor:
        """Zero for what does not depend on the input."""
        return self._noted[id(tensor)][1] if self._has(tensor) else torch.zeros_like(tensor)

    def _has(self, tensor: Tensor) -> bool:
        return id(tensor) in self._noted

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        written = func.overloadpacket.__name__
        name = written.removesuffix("_")
        if not any(map(self._has, _tensors((args, kwargs)))) or name in _CONSTANTS:
            return func(*args, **kwargs)
        if name in _MOVES:
            radii = _tensors(func(self.of(args[0]), *args[1:], **kwargs))
            outputs = func(*args, **kwargs)
            for output, radius in zip(_tensors(outputs), radii, strict=True):
                self.note(output, radius)
            return outputs
        radii = self._radii(func, name, args, kwargs)
        if name != written and not self._has(args[0]):
            raise _UnknownError  # views of it that were made before are taken for constants
        outputs = func(*args, **kwargs)
        for output, radius in zip(_tensors(outputs), radii, strict=True):
            if name == written:
                self.note(output, torch.empty_like(output))  # views need the same strides
            self.of(output).copy_(radius)
        return outputs

    def _radii(self, func: Any, name: str, args: Any, kwargs: Any) -> list[Tensor]:
        """The radius of each output of a sum."""
        plain = _WITHOUT_SIGN.get(name, name)
        weighed = name == "rsub" and (kwargs or len(args) > 2)
        if plain not in _SUMS or weighed or _is_training(name, args):
            raise _UnknownError
        function = getattr(getattr(torch.ops.aten, plain), func._overloadname)

        def absolute(stand_in: Callable[[Tensor], Tensor]) -> list[Tensor]:
            given, named = self._absolute(func, args, kwargs, stand_in)
            return _tensors(function(*given, **named))

        spread, alone = absolute(self.of), absolute(torch.zeros_like)
        terms = absolute(lambda tensor: tensor.abs() + self.of(tensor))
        return [r - a + ROUNDING * t for r, a, t in zip(spread, alone, terms, strict=True)]

    def _absolute(
        self, func: Any, args: Any, kwargs: Any, stand_in: Callable[[Tensor], Tensor]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Arguments with `stand_in` of what depends on the input, and absolute values of what does
        not; what is subtracted, as the mean of a batch norm is, is added so."""

        def turned(argument: Any, value: Any) -> Any:
            if isinstance(value, (list, tuple)):
                return [turned(argument, part) for part in value]
            if isinstance(value, Tensor) and self._has(value):
                return stand_in(value)
            if isinstance(value, Tensor) and value.dtype != torch.bool:
                return -value.abs() if argument.name == "running_mean" else value.abs()
            is_number = isinstance(value, (int, float)) and str(argument.type) in _OPERANDS
            return abs(value) if is_number else value

        arguments = func._schema.arguments
        by_name = {argument.name: argument for argument in arguments}
        positional = [turned(*pair) for pair in zip(arguments, args, strict=False)]
        return positional, {key: turned(by_name[key], value) for key, value in kwargs.items()}


def _is_training(name: str, args: Any) -> bool:
    """Whether this is a batch norm that computes its statistics from the batch."""
    return name.endswith("batch_norm") and bool(args[5])


def _tensors(value: Any) -> list[Tensor]:
    """The tensors in nested sequences and dicts."""
    if isinstance(value, Tensor):
        return [value]
    if not isinstance(value, (list, tuple, dict)):
        return []
    parts = value.values() if isinstance(value, dict) else value
    return [tensor for part in parts for tensor in _tensors(part)]
