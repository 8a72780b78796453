"""Frees ONNX graphs that were exported for one input at a time from that batch size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto


def with_free_batch(model: ModelProto) -> ModelProto:
    """A copy in which every Reshape to a constant `(1, ...)` keeps the batch that it gets.

    The first entry becomes -1, which on one input gives the same shape as before, or 0 (the
    first dimension of the Reshape's input) where another entry is -1 already.
    """
    from onnx import ModelProto, numpy_helper

    freed = ModelProto()
    freed.CopyFrom(model)
    values = constants(freed.graph)
    for number, node in enumerate(freed.graph.node):
        if node.op_type != "Reshape" or node.input[0] in values:
            continue
        shape = values.get(node.input[1], np.empty(0)).tolist()
        if shape[:1] == [1]:
            free = np.array([0 if -1 in shape else -1, *shape[1:]], dtype=np.int64)
            node.input[1] = f"free_batch_{number}"
            freed.graph.initializer.append(numpy_helper.from_array(free, node.input[1]))
    return freed


def constants(graph: GraphProto) -> dict[str, np.ndarray]:
    """The values, by name, of initialisers and of Constant nodes."""
    from onnx import helper, numpy_helper

    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant":
            value = helper.get_attribute_value(node.attribute[0])
            is_tensor = node.attribute[0].name == "value"
            values[node.output[0]] = numpy_helper.to_array(value) if is_tensor else np.array(value)
    return values
