import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from facetwalk.zoo.onnx_batch import with_free_batch

WEIGHT = np.arange(6, dtype=np.float32)


def node(op: str, inputs: list[str], output: str, **attributes) -> onnx.NodeProto:
    return helper.make_node(op, inputs, [output], **attributes)


def run(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    (y,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    return y


@pytest.mark.parametrize(
    "shape_node",
    [
        None,
        node("Constant", [], "shape", value=numpy_helper.from_array(np.array([1, 6]))),
        node("Constant", [], "shape", value_ints=[1, 6]),
    ],
    ids=["initialiser", "tensor constant", "list constant"],
)
@pytest.mark.parametrize("shape", [[1, 6], [1, -1]])
def test_a_reshape_to_batch_one_takes_any_batch(write_onnx, shape_node, shape):
    reshape = node("Reshape", ["x", "shape"], "y")
    path = write_onnx(
        [reshape] if shape_node is None else [shape_node, reshape],
        {"shape": np.array(shape)} if shape_node is None else {},
        ["N", 2, 3],
        ["N", 6],
    )
    x = np.random.default_rng(0).random((4, 2, 3), dtype=np.float32)
    np.testing.assert_array_equal(run(with_free_batch(onnx.load(path)), x), x.reshape(4, 6))


def test_a_batch_that_was_flattened_away_comes_back(write_onnx):
    path = write_onnx(
        [node("Reshape", ["x", "flat"], "h"), node("Reshape", ["h", "shape"], "y")],
        {"flat": np.array([-1]), "shape": np.array([1, 3, 2])},
        ["N", 2, 3],
        ["N", 3, 2],
    )
    x = np.random.default_rng(0).random((4, 2, 3), dtype=np.float32)
    np.testing.assert_array_equal(run(with_free_batch(onnx.load(path)), x), x.reshape(4, 3, 2))


def test_reshapes_of_weights_and_other_uses_of_a_shape_stay(write_onnx):
    path = write_onnx(
        [
            node("Reshape", ["weight", "weight_shape"], "w"),
            node("Reshape", ["x", "shape"], "h"),
            node("Mul", ["h", "w"], "product"),
            node("Cast", ["shape"], "offset", to=onnx.TensorProto.FLOAT),
            node("ReduceSum", ["offset"], "total"),
            node("Add", ["product", "total"], "y"),
        ],
        {"weight": WEIGHT, "weight_shape": np.array([1, -1]), "shape": np.array([1, 6])},
        ["N", 2, 3],
        ["N", 6],
    )
    x = np.random.default_rng(0).random((4, 2, 3), dtype=np.float32)
    expected = x.reshape(4, 6) * WEIGHT + 7
    np.testing.assert_allclose(run(with_free_batch(onnx.load(path)), x), expected)


def test_the_original_does_not_change(write_onnx):
    path = write_onnx(
        [node("Reshape", ["x", "shape"], "y")], {"shape": np.array([1, 6])}, [1, 6], [1, 6]
    )
    model = onnx.load(path)
    before = model.SerializeToString()
    assert with_free_batch(model).SerializeToString() != before
    assert model.SerializeToString() == before
