import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from onnx import NodeProto, TensorProto, helper, numpy_helper
from torch import Tensor, nn

from facetwalk.sites import discover
from facetwalk.types import InputError, MissingExtraError, ModelError
from facetwalk.zoo import load_onnx


def node(op: str, inputs: str, output: str, **attributes) -> NodeProto:
    return helper.make_node(op, inputs.split(), [output], **attributes)


def weights(**shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    return {name: rng.uniform(-1, 1, shape).astype(np.float32) for name, shape in shapes.items()}


def onnx_rows(path: Path, x: Tensor) -> Tensor:
    """onnxruntime's first output, one row at a time."""
    session = onnxruntime.InferenceSession(path)
    name = session.get_inputs()[0].name
    outputs = [session.run(None, {name: row.numpy()})[0] for row in x.split(1)]
    return torch.from_numpy(np.concatenate(outputs))


MLP = weights(w1=(6, 4), b1=(6,), w2=(2, 6), b2=(2,))
CONV = weights(k=(3, 1, 3, 3), c=(3,), w=(48, 2), b=(2,))
RELU_MLP = [
    node("Gemm", "x w1 b1", "z", transB=1),
    node("Relu", "z", "a"),
    node("Gemm", "a w2 b2", "y", transB=1),
]


def mlp(activation: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    def run(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
        return activation(x @ w1.T + b1) @ w2.T + b2

    return run


def mlp_nodes(*activation: NodeProto) -> list[NodeProto]:
    return [RELU_MLP[0], *activation, RELU_MLP[2]]


def residual(x: Tensor, w: Tensor) -> Tensor:
    return x + F.relu(x @ w)


def conv(x: Tensor, k: Tensor, c: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.relu(F.conv2d(x, k, c, padding=1)).flatten(1) @ w + b


def conv_nodes(*flatten: NodeProto) -> list[NodeProto]:
    return [
        node("Conv", "x k c", "z", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Relu", "z", "a"),
        *flatten,
        node("Gemm", "f w b", "y"),
    ]


GRAPHS = {
    "mlp": (RELU_MLP, MLP, (4,), mlp(F.relu)),
    "leaky": (mlp_nodes(node("LeakyRelu", "z", "a", alpha=0.2)), MLP, (4,),
              mlp(lambda z: F.leaky_relu(z, 0.2))),
    "clip": (mlp_nodes(node("Clip", "z low high", "a")),
             MLP | {"low": np.float32(-0.5), "high": np.float32(0.5)}, (4,),
             mlp(lambda z: z.clamp(-0.5, 0.5))),
    "residual": ([node("MatMul", "x w", "z"), node("Relu", "z", "a"), node("Add", "x a", "y")],
                 weights(w=(4, 4)), (4,), residual),
    "conv": (conv_nodes(node("Flatten", "a", "f")), CONV, (1, 4, 4), conv),
    "reshape": (conv_nodes(node("Reshape", "a shape", "f")),
                CONV | {"shape": np.array([0, -1])}, (1, 4, 4), conv),
    "reshape to one row": (conv_nodes(node("Reshape", "a shape", "f")),
                           CONV | {"shape": np.array([1, -1])}, (1, 4, 4), conv),
    "reshape to (1, 48)": (conv_nodes(node("Reshape", "a shape", "f")),
                           CONV | {"shape": np.array([1, 48])}, (1, 4, 4), conv),
}  # fmt: skip


@pytest.mark.parametrize("opset", [13, 17, 20, 22])
@pytest.mark.parametrize("batch", [1, "N"])
@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_becomes_the_same_network_for_batches(write_onnx, name, batch, opset):
    nodes, constants, shape, reference = GRAPHS[name]
    path = write_onnx(nodes, constants, [batch, *shape], [batch, None], opset)
    loaded = load_onnx(path)
    assert (loaded.input_shape, loaded.name, loaded.dtype) == (shape, "net", torch.float32)
    assert not any(part.training for part in loaded.model.modules())
    x = torch.randn(5, *shape, generator=torch.Generator().manual_seed(1))
    tensors = [torch.from_numpy(v) for v in constants.values() if v.dtype == np.float32 and v.ndim]
    with torch.no_grad():
        y = loaded.model(x)
    torch.testing.assert_close(y, reference(x, *tensors))
    torch.testing.assert_close(y, onnx_rows(path, x))


@pytest.mark.parametrize(
    ("name", "ops", "shapes"),
    [
        ("mlp", ["relu"], [(6,)]),
        ("leaky", ["leaky_relu"], [(6,)]),
        ("clip", ["clamp", "clamp"], [(6,), (6,)]),
        ("residual", ["relu"], [(4,)]),
        ("conv", ["relu"], [(3, 4, 4)]),
        ("reshape to one row", ["relu"], [(3, 4, 4)]),
    ],
)
def test_the_sites_of_a_converted_network_are_found(write_onnx, name, ops, shapes):
    nodes, constants, shape, _ = GRAPHS[name]
    loaded = load_onnx(write_onnx(nodes, constants, [1, *shape], [1, None]))
    sites = discover(loaded.model, torch.zeros(1, *shape))
    assert [site.op for site in sites] == ops
    assert [site.shape for site in sites] == shapes


def test_a_double_network_keeps_its_precision(write_onnx):
    constants = {name: value.astype(np.float64) for name, value in MLP.items()}
    path = write_onnx(RELU_MLP, constants, ["N", 4], ["N", 2], dtype=TensorProto.DOUBLE)
    loaded = load_onnx(str(path))
    assert loaded.dtype == torch.float64
    x = torch.linspace(-1, 1, 8, dtype=torch.float64).reshape(2, 4)
    torch.testing.assert_close(loaded.model(x), onnx_rows(path, x), rtol=1e-12, atol=1e-12)


def test_initialisers_among_the_inputs_do_not_count(write_onnx):
    path = write_onnx(RELU_MLP, MLP, ["N", 4], ["N", 2], more_inputs=list(MLP))
    assert load_onnx(path).input_shape == (4,)


def test_a_shape_for_one_row_that_is_a_constant_node_is_freed(write_onnx):
    shape = node("Constant", "", "shape", value=numpy_helper.from_array(np.array([1, 48])))
    path = write_onnx(
        conv_nodes(shape, node("Reshape", "a shape", "f")), CONV, [1, 1, 4, 4], [1, 2]
    )
    x = torch.randn(5, 1, 4, 4, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(load_onnx(path).model(x), onnx_rows(path, x))


def test_every_output_is_kept(write_onnx):
    path = write_onnx(RELU_MLP, MLP, ["N", 4], ["N", 2])
    model = onnx.load(path)
    model.graph.output.append(helper.make_tensor_value_info("a", TensorProto.FLOAT, ["N", 6]))
    onnx.save(model, path)
    y, a = load_onnx(path).model(torch.zeros(2, 4))
    assert (y.shape, a.shape) == ((2, 2), (2, 6))


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"there is no ONNX file .*nowhere\.onnx"):
        load_onnx(tmp_path / "nowhere.onnx")


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match="there is no ONNX file"):
        load_onnx(tmp_path)


@pytest.mark.parametrize("content", [b"", b"this is no network", b"\x08\x07\x12\x00"])
def test_a_file_that_is_not_onnx_is_refused_in_one_line(tmp_path, content, capfd):
    path = tmp_path / "net.onnx"
    path.write_bytes(content)
    with pytest.raises(InputError, match="cannot be read as an ONNX network") as caught:
        load_onnx(path)
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


def refused(path: Path, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match) as caught:
        load_onnx(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("shape", "match"),
    [
        (["N", "features"], "every dimension but the batch fixed"),
        (["N", None], "every dimension but the batch fixed"),
        ([4], "first dimension must be the batch"),
        ([1], "first dimension must be the batch"),
        ([3, 4], "first dimension must be the batch"),
    ],
)
def test_inputs_without_a_known_shape_are_refused(write_onnx, shape, match):
    refused(write_onnx([node("Relu", "x", "y")], {}, shape, None), InputError, match)


def test_two_inputs_are_refused(write_onnx):
    path = write_onnx([node("Add", "x other", "y")], {}, ["N", 4], None, more_inputs=["other"])
    refused(path, InputError, r"2 inputs \(x, other\) and must have exactly one")


def test_integer_inputs_are_refused(write_onnx):
    path = write_onnx([node("Abs", "x", "y")], {}, ["N", 4], None, dtype=TensorProto.INT64)
    refused(path, InputError, r"takes tensor\(int64\)")


def test_an_output_without_a_batch_is_refused(write_onnx):
    path = write_onnx([node("Reshape", "x s", "y")], {"s": np.array([-1])}, [1, 4], [4])
    refused(path, ModelError, "not a tensor whose first dimension is the batch")


def with_output(path: Path, kind: int) -> Path:
    """The same file, whose output is of another type."""
    model = onnx.load(path)
    model.graph.output[0].type.tensor_type.elem_type = kind
    onnx.save(model, path)
    return path


def test_truth_values_are_compared_too(write_onnx):
    nodes = [node("Greater", "x zero", "y")]
    path = write_onnx(nodes, {"zero": np.zeros(1, np.float32)}, ["N", 4], ["N", 4])
    loaded = load_onnx(with_output(path, TensorProto.BOOL))
    x = torch.tensor([[-1.0, 1, 0, 2]])
    assert loaded.model(x).tolist() == [[False, True, False, True]]


def test_outputs_that_are_words_or_nothing_are_refused(write_onnx):
    nodes = [node("ArgMax", "x", "which", axis=1), node("Gather", "words which", "y")]
    words = {"words": np.array(["cat", "dog", "frog", "ship"], dtype=object)}
    path = with_output(write_onnx(nodes, words, ["N", 4], ["N", 1]), TensorProto.STRING)
    refused(path, ModelError, r"holds no numbers \(object, shape \(1, 1\)\): export .* without it")
    path = write_onnx([node("Relu", "x", "y")], {}, ["N", 0], ["N", 0])
    refused(path, ModelError, r"holds no numbers \(float32, shape \(1, 0\)\)")


def test_an_operator_that_onnx2torch_lacks_is_named(write_onnx):
    refused(
        write_onnx([node("Hardmax", "x", "y")], {}, ["N", 4], ["N", 4]),
        ModelError,
        "cannot be converted to torch: .*Hardmax",
    )


def test_a_network_that_onnxruntime_cannot_run_is_refused(write_onnx):
    path = write_onnx([node("Reshape", "x s", "y")], {"s": np.array([1, 3])}, ["N", 4], None)
    refused(path, ModelError, "onnxruntime cannot run")


@pytest.mark.parametrize(
    ("nodes", "constants"),
    [
        ([node("Concat", "x extra", "y", axis=1)], weights(extra=(1, 2))),
        ([node("ReduceSum", "x axes", "y", keepdims=1)], {"axes": np.array([0])}),
    ],
    ids=["a constant of batch one", "a sum over the batch"],
)
def test_a_network_that_cannot_take_a_batch_is_refused(write_onnx, nodes, constants):
    path = write_onnx(nodes, constants, [1, 4], [1, None])
    refused(path, ModelError, "works on one input but not on a batch")


def test_a_conversion_that_changes_the_network_is_refused(write_onnx, monkeypatch):
    path = write_onnx(RELU_MLP, MLP, ["N", 4], ["N", 2])
    load_onnx(path)
    import onnx2torch

    monkeypatch.setattr(onnx2torch, "convert", lambda graph: nn.Linear(4, 2))
    refused(path, ModelError, "does not match onnxruntime .*off by")
    monkeypatch.setattr(onnx2torch, "convert", lambda graph: nn.Linear(4, 3))
    refused(path, ModelError, r"does not match onnxruntime .*\(3, 3\).* instead of .*\(3, 2\)")
    monkeypatch.setattr(onnx2torch, "convert", lambda graph: nn.Linear(5, 2))
    refused(path, ModelError, "does not match onnxruntime .*RuntimeError")


@pytest.mark.parametrize("name", ["w1", "b1", "w2"])
@pytest.mark.parametrize(
    ("value", "match"), [(np.nan, "holds NaN in"), (np.inf, "holds infinite numbers in")]
)
def test_weights_that_are_no_finite_numbers_are_named(write_onnx, name, value, match):
    constants = {**MLP, name: np.full_like(MLP[name], value)}
    path = write_onnx(RELU_MLP, constants, ["N", 4], ["N", 2])
    refused(path, ModelError, f"net.onnx {match} its weights: export a network whose weights")


def test_outputs_that_are_no_finite_numbers_are_named(write_onnx):
    large = {name: np.full_like(MLP[name], 3e38) for name in ("b1", "w2")}
    path = write_onnx(RELU_MLP, MLP | large, ["N", 4], ["N", 2])
    refused(path, ModelError, "gives NaN or infinite numbers for random inputs: export one whose")


def test_infinite_constants_may_be_right(write_onnx):
    clip = mlp_nodes(node("Clip", "z low high", "a"))
    constants = {**MLP, "low": np.array(0, np.float32), "high": np.array(np.inf, np.float32)}
    path = write_onnx(clip, constants, ["N", 4], ["N", 2])
    assert torch.allclose(
        load_onnx(path).model(torch.zeros(1, 4)), onnx_rows(path, torch.zeros(1, 4))
    )


@pytest.mark.parametrize("name", ["onnx", "onnx2torch", "onnxruntime"])
def test_a_missing_package_names_the_extra(write_onnx, monkeypatch, name):
    path = write_onnx(RELU_MLP, MLP, ["N", 4], ["N", 2])
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"reading ONNX files .*facetwalk\[onnx\]"):
        load_onnx(path)


def test_importing_onnx2torch_leaves_no_torchvision_that_does_not_load(write_onnx, monkeypatch):
    for name in list(sys.modules):
        if name.split(".")[0] in ("onnx2torch", "torchvision"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torchvision", None)
    load_onnx(write_onnx(RELU_MLP, MLP, ["N", 4], ["N", 2]))
    left = {name: m for name, m in sys.modules.items() if name.split(".")[0] == "torchvision"}
    assert left == {"torchvision": None}
