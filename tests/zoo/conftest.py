from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper

WriteOnnx = Callable[..., Path]


@pytest.fixture
def write_onnx(tmp_path: Path) -> WriteOnnx:
    """Writes a graph from `x` to `y` and returns the path of the file."""

    def write(
        nodes: Sequence[NodeProto],
        constants: dict[str, np.ndarray],
        input_shape: Sequence[int | str | None],
        output_shape: Sequence[int | str | None],
        opset: int = 17,
        dtype: int = TensorProto.FLOAT,
        more_inputs: Sequence[str] = (),
    ) -> Path:
        inputs = [helper.make_tensor_value_info("x", dtype, input_shape)]
        inputs += [helper.make_tensor_value_info(name, dtype, None) for name in more_inputs]
        graph = helper.make_graph(
            nodes,
            "graph",
            inputs,
            [helper.make_tensor_value_info("y", dtype, output_shape)],
            [numpy_helper.from_array(value, name) for name, value in constants.items()],
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8
        )
        path = tmp_path / "net.onnx"
        onnx.save(model, path)
        return path

    return write
