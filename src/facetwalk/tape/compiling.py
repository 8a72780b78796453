"""A tape as one compiled function."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.utils._pytree import tree_map

from facetwalk.tape.operation import Operation
from facetwalk.tape.tape import Tape
from facetwalk.types import InputError

_OPTIONS = {"size_asserts": False, "cpp_wrapper": True, "pattern_matcher": False}
"""No Python between the kernels, and sums stay apart from the products before them."""


def compiled(tape: Tape) -> Callable[[], object]:
    """What does the same as `tape.replay`, compiled by TorchInductor; this takes seconds."""
    graph = _Graph(tape.always)
    try:
        with tape.threads():  # how many there are is compiled, too
            function = compile_graph(graph.module(), graph.inputs)
    except Exception as error:
        raise InputError(
            "steps cannot be compiled here, which needs a C++ compiler that works with torch: "
            f"install g++ or clang, or leave compile out ({_first_line(error)})"
        ) from error

    def replay() -> None:
        with tape.threads():
            function(*graph.inputs)

    return replay


def compile_graph(module: fx.GraphModule, inputs: list[Tensor]) -> Callable[..., object]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, about its own parts
        from torch import _inductor  # takes a second

        function: Any = _inductor.compile(module, [*inputs], _OPTIONS)
        return function


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).strip().splitlines()[0]


class _Graph:
    """Operations as a graph whose inputs are the tensors that were there before."""

    def __init__(self, operations: list[Operation]) -> None:
        self.graph = fx.Graph()
        self.inputs: list[Tensor] = []
        self.nodes: dict[int, fx.Node] = {}
        made: set[int] = set()
        for each in operations:
            for tensor in each.inputs:
                if id(tensor) not in made and id(tensor) not in self.nodes:
                    self.nodes[id(tensor)] = self.graph.placeholder(f"input_{len(self.inputs)}")
                    self.inputs.append(tensor)
            made |= {id(tensor) for tensor in each.outputs}
        for each in operations:
            self._add(each)
        self.graph.output(())

    def _add(self, operation: Operation) -> None:
        args, kwargs = tree_map(self._node_of, (operation.args, operation.kwargs))
        if operation.function is torch.ops.aten.addmm.default and not kwargs:
            product = self.graph.call_function(torch.ops.aten.mm.default, args[1:])
            node = self.graph.call_function(torch.ops.aten.add.Tensor, (product, args[0]))
        else:
            node = self.graph.call_function(operation.function, args, kwargs)
        if isinstance(operation.result, Tensor):
            self.nodes[id(operation.result)] = node
        elif isinstance(operation.result, (list, tuple)):
            for place, tensor in enumerate(operation.result):
                part = self.graph.call_function(operator.getitem, (node, place))
                self.nodes[id(tensor)] = part

    def _node_of(self, leaf: Any) -> Any:
        return self.nodes[id(leaf)] if isinstance(leaf, Tensor) else leaf

    def module(self) -> fx.GraphModule:
        return fx.GraphModule(nn.Module(), self.graph)
