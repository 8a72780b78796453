"""The way back through autograd's graph without torch's own engine, which asks the device for
threads and streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import get_gradient_edge

Edge = tuple[Any, int]
"""A node of the graph, and which of its outputs."""


def run_backward(
    outputs: Sequence[Tensor],
    gradients: Sequence[Tensor | None],
    retain_graph: bool,
    create_graph: bool,
    inputs: Sequence[Any] = (),
    allow_unreachable: bool = True,
    accumulate_grad: bool = False,
) -> tuple[Tensor | None, ...]:
    """As torch's engine does, but that hooks are not run and that no graph is freed."""
    if not all(output.requires_grad for output in outputs):
        raise RuntimeError("a tensor does not require grad and does not have a grad_fn")
    with torch.enable_grad():
        roots, wanted = ([_edge(tensor) for tensor in each] for each in (outputs, inputs))
    order = _postorder([node for node, _ in roots])
    leading = {node for node, _ in wanted} if wanted else {n for n in order if _is_leaf(n)}
    for node in order:
        if any(behind in leading for behind, _ in node.next_functions):
            leading.add(node)
    found: dict[Edge, Tensor] = {}
    for edge, gradient in zip(roots, gradients, strict=True):
        _add(found, edge, gradient)
    with torch.set_grad_enabled(create_graph):
        for node in reversed(order):
            if node in leading and not _is_leaf(node):
                for edge, gradient in _passed_on(node, found):
                    _add(found, edge, gradient)
    if accumulate_grad:
        for (node, _), gradient in found.items():
            if _is_leaf(node) and node in leading:
                before = node.variable.grad
                node.variable.grad = gradient if before is None else before + gradient
    if not allow_unreachable and not all(edge in found for edge in wanted):
        raise RuntimeError("One of the differentiated Tensors appears to not have been used")
    return tuple(found.get(edge) for edge in wanted)


def _edge(tensor: Tensor) -> Edge:
    edge = get_gradient_edge(tensor)
    return edge.node, edge.output_nr


def _is_leaf(node: Any) -> bool:
    return hasattr(node, "variable")


def _postorder(roots: Sequence[Any]) -> list[Any]:
    """All nodes behind some, each after those behind it."""
    order: dict[Any, None] = {}
    stack = list(roots)
    while stack:
        behind = [n for n, _ in stack[-1].next_functions if n is not None and n not in order]
        if behind:
            stack.append(behind[0])
        else:
            order[stack.pop()] = None
    return list(order)


def _add(found: dict[Edge, Tensor], edge: Edge, gradient: Tensor | None) -> None:
    """Add a gradient, in the shape and the precision that its tensor has."""
    if gradient is None:
        return
    tensor = edge[0]._input_metadata[edge[1]]
    gradient = gradient.sum_to_size(tensor.shape).to(tensor.dtype)
    found[edge] = found[edge] + gradient if edge in found else gradient


def _passed_on(node: Any, found: dict[Edge, Tensor]) -> list[tuple[Edge, Tensor | None]]:
    """Where a node's gradients go, and what they are."""
    known = [found.get((node, place)) for place in range(len(node._input_metadata))]
    if all(gradient is None for gradient in known):
        return []
    edges = [edge for edge in node.next_functions if edge[0] is not None]
    if not isinstance(node, torch.autograd.function.BackwardCFunction):
        passed = _as_tuple(node(*known))
        pairs = zip(node.next_functions, passed, strict=True)
        return [(edge, gradient) for edge, gradient in pairs if edge[0] is not None]
    shapes = zip(known, node._input_metadata, strict=True)
    full = [_zeros(m) if g is None else g for g, m in shapes]
    passed = zip(_as_tuple(node.apply(*full)), node.needs_input_grad, strict=True)
    return list(zip(edges, [g for g, needed in passed if needed], strict=True))


def _as_tuple(passed: Any) -> tuple[Tensor | None, ...]:
    return passed if isinstance(passed, tuple) else (passed,)


def _zeros(like: Any) -> Tensor:
    return torch.zeros(like.shape, dtype=like.dtype, device=like.device)
