"""Which ReLUs `discover` finds, and what the model does when they are replaced."""

from __future__ import annotations

import contextlib
import copy
import tempfile
import warnings
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
import torch.nn.functional as F
from onnx import NodeProto, TensorProto, helper, numpy_helper
from torch import Tensor, nn
from torch.nn.modules import module as torch_module

from facetwalk.sites import Sites, audit, discover, first_facet, pattern, pattern_of, tangents
from facetwalk.types import InputError, ModelError
from facetwalk.zoo import load_onnx

TOLERANCE = {torch.float64: 1e-7, torch.float32: 1e-6}
"""torch's hard sigmoid has its 1/6 in single precision."""


class Model(nn.Module):
    """Named parts, and a forward that is given as a function of the model and its input."""

    def __init__(self, forward: Callable[[Any, Tensor], Any], **parts: Any) -> None:
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)
        self.run = forward

    def forward(self, x: Tensor) -> Any:
        return self.run(self, x)


def between_layers(act: Callable[[Tensor], Tensor]) -> nn.Module:
    """Linear, `act`, linear: with pre-activations on all pieces of every activation."""
    model = Model(
        lambda self, x: self.last(self.act(self.first(x))),
        first=nn.Linear(4, 6),
        act=copy.deepcopy(act),
        last=nn.Linear(6, 3),
    )
    model.first.weight.data *= 10
    return model


def result_dropped(z: Tensor) -> Tensor:
    z.relu_()
    return z


def prelu(weights: int) -> nn.PReLU:
    module = nn.PReLU(weights)
    module.weight.data = torch.linspace(0.3, -0.4, weights)
    return module


class BasicBlock(nn.Module):
    """As in torchvision: one in-place ReLU module, called twice."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        return self.relu(out)


def residual() -> nn.Module:
    blocks = nn.Sequential(BasicBlock(2, 2), BasicBlock(2, 3))
    return nn.Sequential(
        OrderedDict(layer1=blocks, pool=nn.AvgPool2d(2), flat=nn.Flatten(), head=nn.Linear(12, 3))
    )


def shared() -> nn.Module:
    relu = nn.ReLU()
    return nn.Sequential(nn.Linear(4, 5), relu, nn.Linear(5, 6), relu, nn.Linear(6, 8), relu)


def in_place_on_a_part() -> nn.Module:
    def forward(self: Any, x: Tensor) -> Tensor:
        z = self.first(x)
        z[:, 1:4].relu_()
        return self.last(z)

    return Model(forward, first=nn.Linear(4, 6), last=nn.Linear(6, 2))


def folded() -> nn.Module:
    """Works on `(B * T, F)`, as networks for sequences do."""
    return Model(
        lambda self, x: F.relu(self.inner(x.reshape(-1, 4))).reshape(len(x), -1).sum(1),
        inner=nn.Linear(4, 3),
    )


def transformer(batch_first: bool = True) -> nn.Module:
    return nn.TransformerEncoderLayer(4, 2, 6, activation="relu", batch_first=batch_first)


def node(op: str, inputs: str, output: str, **attributes: Any) -> NodeProto:
    return helper.make_node(op, inputs.split(), [output], name=f"{op}_{output}", **attributes)


def from_onnx(shape: tuple[int, ...], weights: dict[str, tuple[int, ...]], *nodes: NodeProto):
    rng = np.random.default_rng(0)
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", *shape])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 2])],
        [
            numpy_helper.from_array(rng.uniform(-1, 1, size).astype(np.float32), name)
            for name, size in weights.items()
        ],
    )
    opset = helper.make_opsetid("", 17)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), path)
        return load_onnx(path).model


def onnx_mlp() -> nn.Module:
    return from_onnx(
        (4,),
        {"w1": (6, 4), "b1": (6,), "w2": (5, 6), "b2": (5,), "w3": (2, 5), "b3": (2,)},
        node("Gemm", "x w1 b1", "z1", transB=1),
        node("Relu", "z1", "a1"),
        node("Gemm", "a1 w2 b2", "z2", transB=1),
        node("Relu", "z2", "a2"),
        node("Gemm", "a2 w3 b3", "y", transB=1),
    )


def onnx_conv() -> nn.Module:
    return from_onnx(
        (1, 4, 4),
        {"k": (3, 1, 3, 3), "c": (3,), "w": (48, 2), "b": (2,)},
        node("Conv", "x k c", "z", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Relu", "z", "a"),
        node("Flatten", "a", "f"),
        node("Gemm", "f w b", "y"),
    )


@dataclass(frozen=True)
class Case:
    build: Callable[[], nn.Module]
    shape: tuple[int, ...]
    sites: list[tuple[str, str, tuple[int, ...]]]
    """Name, function and shape of each."""

    def model(self, dtype: torch.dtype = torch.float64) -> nn.Module:
        """In eval mode, with batch norms that have seen something."""
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = self.build()
            for part in model.modules():
                if isinstance(part, nn.modules.batchnorm._BatchNorm):
                    for tensor in (part.weight, part.running_var):
                        tensor.data.uniform_(0.2, 1.8)
                    for tensor in (part.bias, part.running_mean):
                        tensor.data.uniform_(-0.2, 0.2)
            return model.eval().to(dtype)

    def inputs(self, rows: int = 40, dtype: torch.dtype = torch.float64) -> Tensor:
        generator = torch.Generator().manual_seed(1)
        return torch.randn(rows, *self.shape, dtype=torch.float64, generator=generator).to(dtype)


def activation(act: Callable[[Tensor], Tensor], *ops: str) -> Case:
    path = "act" if isinstance(act, nn.Module) else "model"
    sites = [(f"{path}#{i}", op, (6,)) for i, op in enumerate(ops)]
    return Case(lambda: between_layers(act), (4,), sites)


AFFINE = {
    "nn.ReLU": activation(nn.ReLU(), "relu"),
    "F.relu": activation(F.relu, "relu"),
    "torch.relu": activation(torch.relu, "relu"),
    "Tensor.relu": activation(lambda z: z.relu(), "relu"),
    "nn.ReLU in place": activation(nn.ReLU(inplace=True), "relu"),
    "F.relu in place": activation(lambda z: F.relu(z, inplace=True), "relu"),
    "F.relu_": activation(F.relu_, "relu"),
    "torch.relu_": activation(torch.relu_, "relu"),
    "Tensor.relu_": activation(lambda z: z.relu_(), "relu"),
    "in place, result dropped": activation(result_dropped, "relu"),
    "torch.clamp": activation(lambda z: torch.clamp(z, min=0), "clamp"),
    "Tensor.clamp": activation(lambda z: z.clamp(min=0), "clamp"),
    "Tensor.clamp_": activation(lambda z: z.clamp_(0), "clamp"),
    "torch.clamp_min": activation(lambda z: torch.clamp_min(z, 0), "clamp_min"),
    "Tensor.clamp_min": activation(lambda z: z.clamp_min(0.0), "clamp_min"),
    "clamp with both bounds": activation(lambda z: z.clamp(-1, 2), "clamp", "clamp"),
    "F.threshold": activation(lambda z: F.threshold(z, 0, 0), "threshold"),
    "nn.Threshold": activation(nn.Threshold(0, 0), "threshold"),
    "F.relu6": activation(F.relu6, "relu6", "relu6"),
    "nn.ReLU6": activation(nn.ReLU6(), "hardtanh", "hardtanh"),
    "nn.Hardtanh": activation(nn.Hardtanh(), "hardtanh", "hardtanh"),
    "nn.LeakyReLU": activation(nn.LeakyReLU(0.1), "leaky_relu"),
    "nn.PReLU, one weight": activation(prelu(1), "prelu"),
    "nn.PReLU, a weight a feature": activation(prelu(6), "prelu"),
    "nn.RReLU": activation(nn.RReLU(), "rrelu"),
    "torch.abs": activation(torch.abs, "abs"),
    "Tensor.abs": activation(lambda z: z.abs(), "abs"),
    "torch.maximum with zero": activation(lambda z: torch.maximum(z, z.new_zeros(())), "maximum"),
    "torch.max of two": activation(lambda z: torch.max(z, z.flip(1) / 2), "max"),
    "torch.minimum": activation(lambda z: torch.minimum(z, torch.ones_like(z)), "minimum"),
    "nn.Hardsigmoid": activation(nn.Hardsigmoid(), "hardsigmoid", "hardsigmoid"),
    "nn.Softshrink": activation(nn.Softshrink(), "softshrink", "softshrink"),
    "one module called three times": Case(
        shared, (4,), [("1#0", "relu", (5,)), ("1#1", "relu", (6,)), ("1#2", "relu", (8,))]
    ),
    "residual, shared in-place ReLU": Case(
        residual,
        (2, 4, 4),
        [
            ("layer1.0.relu#0", "relu", (2, 4, 4)),
            ("layer1.0.relu#1", "relu", (2, 4, 4)),
            ("layer1.1.relu#0", "relu", (3, 4, 4)),
            ("layer1.1.relu#1", "relu", (3, 4, 4)),
        ],
    ),
    "batch norm": Case(
        lambda: nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 2)),
        (4,),
        [("2#0", "relu", (6,))],
    ),
    "dropout": Case(
        lambda: nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Dropout(), nn.Linear(6, 2)),
        (4,),
        [("1#0", "relu", (6,))],
    ),
    "conv with a PReLU weight a channel": Case(
        lambda: nn.Sequential(nn.Conv2d(1, 3, 2), prelu(3), nn.Flatten(), nn.Linear(12, 2)),
        (1, 3, 3),
        [("1#0", "prelu", (3, 2, 2))],
    ),
    "conv with one PReLU weight": Case(
        lambda: nn.Sequential(nn.Conv2d(1, 3, 2), prelu(1), nn.Flatten(), nn.Linear(12, 2)),
        (1, 3, 3),
        [("1#0", "prelu", (3, 2, 2))],
    ),
    "functional in a nested module": Case(
        lambda: nn.Sequential(nn.Linear(4, 4), between_layers(F.relu)),
        (4,),
        [("1#0", "relu", (6,))],
    ),
    "folded batch": Case(folded, (5, 4), [("model#0", "relu", (5, 3))]),
    "in place on its own input": Case(
        lambda: Model(lambda self, x: self.last(x.mul_(2).relu_()), last=nn.Linear(4, 2)),
        (4,),
        [("model#0", "relu", (4,))],
    ),
    "in place on a part": Case(in_place_on_a_part, (4,), [("model#0", "relu", (3,))]),
    "an ONNX mlp": Case(onnx_mlp, (4,), [("Relu_a1#0", "relu", (6,)), ("Relu_a2#0", "relu", (5,))]),
    "an ONNX conv": Case(onnx_conv, (1, 4, 4), [("Relu_a#0", "relu", (3, 4, 4))]),
}

NOT_AFFINE = {
    "transformer": Case(transformer, (5, 4), [("model#0", "relu", (5, 6))]),
    "max-pool": Case(
        lambda: nn.Sequential(
            *[nn.Conv2d(1, 3, 2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(3, 4, 1), nn.ReLU()],
            *[nn.Flatten(), nn.Linear(16, 2)],
        ),
        (1, 5, 5),
        [("1#0", "relu", (3, 4, 4)), ("4#0", "relu", (4, 2, 2))],
    ),
}


def not_a_site(function: Callable[[Tensor], Tensor]) -> Case:
    """A ReLU after something that is no site."""
    return activation(lambda z: F.relu(function(z)), "relu")


PARAMETER = nn.Parameter(torch.linspace(-1, 1, 6, dtype=torch.float64))

ONE_SITE = {
    "relu of a parameter": not_a_site(lambda z: z * F.relu(PARAMETER.to(z.dtype))),
    "relu of a constant": not_a_site(lambda z: z + F.relu(PARAMETER.detach().to(z.dtype))),
    "a guard against overflow": not_a_site(lambda z: z.clamp(-1e3, 1e3)),
    "a larger guard": not_a_site(lambda z: torch.clamp(z, max=1e20)),
    "max over features": not_a_site(lambda z: z + 1 - torch.max(z, 1, keepdim=True).values / 2),
    "max by position": not_a_site(lambda z: z + 1 - z.max(1)[0].unsqueeze(1) / 2),
    "integers": not_a_site(lambda z: z + z.long().clamp(min=0)),
    "threshold to another value": not_a_site(lambda z: F.threshold(z, 0.5, -0.5)),
}

ALL = AFFINE | NOT_AFFINE | ONE_SITE


def cases(table: dict[str, Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", table.values(), ids=table.keys())


def true_gates(sites: Sites, x: Tensor) -> list[Tensor]:
    with torch.no_grad():
        return pattern_of(sites, sites.pre_activations(x)[1]).gates(x.dtype)


def value_and_gradient(function: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
    leaf = x.clone().requires_grad_()
    value = function(leaf.clone())
    generator = torch.Generator().manual_seed(2)
    weights = torch.randn(value.shape, dtype=torch.float64, generator=generator).to(x.dtype)
    (gradient,) = torch.autograd.grad(value, leaf, weights)
    return value.detach(), gradient


@cases(ALL)
def test_the_sites_are_found(case):
    sites = discover(case.model(), case.inputs())
    assert [(site.name, site.op, site.shape) for site in sites] == case.sites
    assert len(sites) == len(case.sites)
    assert sites.neurons == sum(int(np.prod(shape)) for _, _, shape in case.sites)


@cases(ALL)
def test_pre_activations_have_the_shapes_of_the_sites_and_do_not_mix_rows(case):
    model, x = case.model(), case.inputs(7)
    sites = discover(model, x)
    output, together = sites.pre_activations(x)
    torch.testing.assert_close(output, model(x.clone()), rtol=0, atol=1e-12)
    assert [z.shape for z in together] == [(7, *shape) for _, _, shape in case.sites]
    for row in (0, 3, 6):
        _, alone = sites.pre_activations(x[row : row + 1])
        for several, one in zip(together, alone, strict=True):
            torch.testing.assert_close(several[row], one[0], rtol=0, atol=1e-12)


@cases({name: case for name, case in AFFINE.items() if case.sites == [("model#0", "relu", (6,))]})
def test_an_in_place_relu_does_not_hide_the_pre_activation(case):
    model, x = case.model(), case.inputs()
    _, (seen,) = discover(model, x).pre_activations(x)
    torch.testing.assert_close(seen, model.first(x))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["double", "float"])
@cases(ALL)
def test_with_its_true_gates_the_network_is_the_model(case, dtype):
    model, x = case.model(dtype), case.inputs(dtype=dtype)
    sites = discover(model, x)
    gates = true_gates(sites, x)
    assert all(0 < gate.mean() < 1 for gate in gates)
    value, gradient = value_and_gradient(model, x)
    gated_value, gated_gradient = value_and_gradient(lambda x: sites.gated(x, gates)[0], x)
    assert gated_value.dtype == dtype
    for actual, expected in ((gated_value, value), (gated_gradient, gradient)):
        scale = expected.abs().max().item()
        torch.testing.assert_close(actual, expected, rtol=0, atol=TOLERANCE[dtype] * (1 + scale))
    wrong, _ = sites.gated(x, [1 - gate for gate in gates])
    assert (wrong - value).abs().max() > 1e-2


@cases(AFFINE)
def test_an_affine_network_passes_the_audit(case):
    model, x = case.model(), case.inputs()
    sites = discover(model, x)
    for row in range(5):
        assert audit(sites, x[row : row + 1], x[row + 1 : row + 2]) is None


def branching(extra: int = 0) -> nn.Module:
    """Two ways through the network; the one for a negative input has `extra` more ReLUs."""

    def forward(self: Any, x: Tensor) -> Tensor:
        if x.sum() > 0:
            return self.last(F.relu(self.up(x)))
        z = F.relu(self.down(x))
        for _ in range(extra):
            z = F.relu(z - 0.1)
        return self.last(z)

    return Model(forward, up=nn.Linear(4, 6), down=nn.Linear(4, 6), last=nn.Linear(6, 2))


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("discovered_on", [1, -1])
def test_a_branch_on_the_data_is_followed(side, discovered_on):
    case = Case(branching, (4,), [])
    model, x = case.model(), case.inputs().abs()
    sites = discover(model, discovered_on * x)
    assert [(site.name, site.shape) for site in sites] == [("model#0", (6,))]
    x = side * x
    gates = true_gates(sites, x)
    for actual, expected in zip(
        value_and_gradient(lambda x: sites.gated(x, gates)[0], x),
        value_and_gradient(model, x),
        strict=True,
    ):
        torch.testing.assert_close(actual, expected, rtol=0, atol=1e-9)
    assert audit(sites, x[:1], x[1:2]) is None


@pytest.mark.parametrize(("discovered_on", "before", "now"), [(1, 1, 3), (-1, 3, 1)])
def test_a_number_of_relus_that_changes_is_refused(discovered_on, before, now):
    case = Case(lambda: branching(extra=2), (4,), [])
    x = case.inputs().abs()
    sites = discover(case.model(), discovered_on * x)
    assert len(sites) == before
    sites.pre_activations(discovered_on * x)
    with pytest.raises(ModelError, match=f"{now} ReLUs in this pass and {before} when"):
        sites.pre_activations(-discovered_on * x)


def test_a_shape_that_changes_is_refused():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU()).eval()
    sites = discover(model, torch.randn(1, 1, 5, 5))
    with pytest.raises(ModelError, match=r"site 1#0 had shape \(2, 3, 3\) .* \(4, 2, 5, 5\)"):
        sites.pre_activations(torch.randn(4, 1, 7, 7))


def transposed(inner: nn.Module) -> nn.Module:
    return Model(lambda self, x: self.inner(x.transpose(0, 1)).transpose(0, 1), inner=inner)


def relu_of_the_mean() -> nn.Module:
    return Model(lambda self, x: x + F.relu(x.mean(0)))


@pytest.mark.parametrize(
    ("build", "shape"),
    [
        pytest.param(lambda: transposed(transformer(False)), (5, 4), id="transformer, length 5"),
        pytest.param(lambda: transposed(transformer(False)), (6, 4), id="transformer, length 6"),
        pytest.param(lambda: transposed(nn.ReLU()), (2, 4), id="transposed, length 2"),
        pytest.param(lambda: transposed(nn.ReLU()), (3, 4), id="transposed, length 3"),
        pytest.param(lambda: transformer(False), (5, 4), id="attention between rows"),
        pytest.param(relu_of_the_mean, (4,), id="mean over the batch, 4 features"),
        pytest.param(relu_of_the_mean, (6,), id="mean over the batch, 6 features"),
        pytest.param(lambda: Model(lambda self, x: x * F.relu(x.sum())), (4,), id="sum of all"),
    ],
)
def test_a_site_that_is_not_batch_first_is_refused(build, shape):
    case = Case(build, shape, [])
    with pytest.raises(ModelError, match="batch"):
        discover(case.model(), case.inputs(4))


@pytest.mark.parametrize(
    "build",
    [
        lambda: nn.Linear(4, 2),
        lambda: nn.Sequential(nn.Linear(4, 3), nn.GELU(), nn.Linear(3, 1)),
        lambda: Model(lambda self, x: x * F.relu(PARAMETER[:4])),
    ],
    ids=["linear", "gelu", "relu of a parameter"],
)
def test_a_model_without_relus_is_refused(build):
    with pytest.raises(ModelError, match="no ReLU was found"):
        discover(build().eval().double(), torch.ones(2, 4, dtype=torch.float64))


@pytest.mark.parametrize("inside", [False, True], ids=["itself", "a part"])
@pytest.mark.parametrize("make", ["script", "trace"])
def test_torchscript_is_refused(make, inside):
    net = nn.Sequential(nn.Linear(4, 3), nn.ReLU()).eval()
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        script = torch.jit.script(net) if make == "script" else torch.jit.trace(net, torch.ones(4))
        model = nn.Sequential(script).eval() if inside else script
        with pytest.raises(ModelError, match="TorchScript"):
            discover(model, torch.ones(1, 4))


def test_a_compiled_model_is_unwrapped():
    case = AFFINE["nn.ReLU"]
    model = case.model()
    compiled = torch.compile(model, backend="eager")
    sites = discover(compiled, case.inputs())
    assert sites.model is model
    assert [site.name for site in sites] == ["act#0"]
    other = case.model()
    assert sites.on(torch.compile(other, backend="eager")).model is other


def test_sites_serve_another_model_of_the_same_architecture():
    case = AFFINE["nn.ReLU"]
    x, other = case.inputs(), case.model()
    other.first.weight.data.neg_()
    sites = discover(case.model(), x).on(other)
    torch.testing.assert_close(sites.pre_activations(x)[0], other(x))
    torch.testing.assert_close(sites.pre_activations(x)[1][0], other.first(x))


def test_a_row_may_hold_one_neuron():
    case = Case(
        lambda: Model(lambda self, x: F.relu(self.first(x).squeeze(1)), first=nn.Linear(4, 1)),
        (4,),
        [],
    )
    model, x = case.model(), case.inputs(5)
    sites = discover(model, x)
    _, seen = sites.pre_activations(x)
    joined = sites.join(seen)
    assert sites.neurons == 1
    torch.testing.assert_close(joined, model.first(x))
    assert torch.equal(sites.split(joined)[0], seen[0])
    assert pattern(model, x).count().tolist() == (model.first(x)[:, 0] > 0).long().tolist()
    slope = -model.first.weight.expand(5, 4)
    expected = model.first(x)[:, 0] / model.first.weight.square().sum()
    expected = torch.where(expected > 0, expected, torch.inf)
    torch.testing.assert_close(first_facet(model, x, slope), expected)


def test_a_pre_activation_that_the_model_changes_later_is_seen_as_it_was():
    def forward(self: Any, x: Tensor) -> Tensor:
        z = self.first(x)
        y = self.second(F.relu(z))
        z += y
        return z

    case = Case(lambda: Model(forward, first=nn.Linear(4, 6), second=nn.Linear(6, 6)), (4,), [])
    model, x = case.model(), case.inputs()
    _, (seen,) = discover(model, x).pre_activations(x)
    torch.testing.assert_close(seen, model.first(x))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_the_grad_mode_of_the_caller_does_not_matter(mode):
    case = AFFINE["nn.ReLU"]
    model, x = case.model(), case.inputs()
    with mode():
        assert [site.name for site in discover(model, x)] == ["act#0"]


@pytest.mark.parametrize("requires_grad", [False, True])
def test_frozen_weights_and_inputs_with_gradients_do_not_matter(requires_grad):
    case = AFFINE["one module called three times"]
    model = case.model().requires_grad_(requires_grad)
    assert len(discover(model, case.inputs().requires_grad_(not requires_grad))) == 3


CALLS = {
    "discover": lambda sites, x: discover(sites.model, x),
    "pre_activations": lambda sites, x: sites.pre_activations(x),
    "gated": lambda sites, x: sites.gated(x, true_gates(sites, x)),
    "pattern": lambda sites, x: pattern(sites.model, x),
    "first_facet": lambda sites, x: first_facet(sites.model, x, torch.ones_like(x)),
    "tangents": lambda sites, x: tangents(sites, x, true_gates(sites, x), torch.ones_like(x)),
    "audit": lambda sites, x: audit(sites, x[:1], x[1:2]),
}
every_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


@every_call
def test_a_model_that_works_in_place_does_not_change_the_callers_input(call):
    case = AFFINE["in place on its own input"]
    model, x = case.model(), case.inputs()
    call(discover(model, case.inputs()), x)
    assert torch.equal(x, case.inputs())
    model(x)
    assert not torch.equal(x, case.inputs())


def hooks_of(model: nn.Module) -> list[dict[str, Any]]:
    tables = [vars(part) for part in model.modules()] + [vars(torch_module)]
    return [
        {key: dict(value) for key, value in table.items() if "hooks" in key and value}
        for table in tables
    ]


class Failing(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        raise ZeroDivisionError("inside forward")


@pytest.mark.parametrize("fails", [False, True], ids=["works", "raises"])
@every_call
def test_the_model_and_the_random_state_stay_as_they_were(call, fails):
    case = Case(
        lambda: nn.Sequential(
            *[residual(), nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Sequential(nn.Identity())]
        ),
        (2, 4, 4),
        [],
    )
    model, x = case.model(), case.inputs(4)
    sites = discover(model, x)
    if fails:
        model[3][0] = Failing().eval()
    model[0].head.weight.requires_grad_(False)
    model[0].head.bias.grad = torch.ones(3, dtype=torch.float64)
    handle = model[1].register_forward_hook(lambda part, args, output: None)
    state, hooks, random = copy.deepcopy(model.state_dict()), hooks_of(model), torch.get_rng_state()
    flags = [part.training for part in model.modules()]
    with pytest.raises(ZeroDivisionError) if fails else contextlib.nullcontext():
        call(sites, x)
    assert hooks_of(model) == hooks
    assert torch._C._len_torch_function_stack() == 0
    assert torch.equal(torch.get_rng_state(), random)
    assert [part.training for part in model.modules()] == flags
    assert model.state_dict().keys() == state.keys()
    assert all(torch.equal(model.state_dict()[name], tensor) for name, tensor in state.items())
    for name, parameter in model.named_parameters():
        assert parameter.requires_grad == (name != "0.head.weight")
        assert (parameter.grad is None) == (name != "0.head.bias")
    assert model[0].head.bias.grad.tolist() == [1, 1, 1]
    handle.remove()


def test_a_model_may_handle_an_error_of_its_own():
    def forward(self: Any, x: Tensor) -> Tensor:
        with contextlib.suppress(ZeroDivisionError):
            self.outer(x)
        return F.relu(self.first(x))

    outer = nn.Sequential(nn.ReLU(), nn.Sequential(Failing()))
    case = Case(lambda: Model(forward, outer=outer, first=nn.Linear(4, 6)), (4,), [])
    names = [site.name for site in discover(case.model(), case.inputs())]
    assert names == ["outer.0#0", "model#0"]


def test_a_model_in_train_mode_stays_as_it_was():
    model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Dropout(0.5))
    state, random = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    with contextlib.suppress(ModelError):
        discover(model, torch.randn(3, 4, generator=torch.Generator()))
    assert all(torch.equal(model.state_dict()[name], tensor) for name, tensor in state.items())
    assert torch.equal(torch.get_rng_state(), random)
    assert model.training


def two_layers() -> nn.Module:
    return nn.Sequential(
        OrderedDict(
            layer1=nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 6), nn.Hardtanh()),
            layer10=nn.Sequential(nn.Linear(6, 5), nn.ReLU()),
            head=nn.Linear(5, 2),
        )
    )


LAYERS = Case(two_layers, (4,), [])
NAMES = ["layer1.1#0", "layer1.3#0", "layer1.3#1", "layer10.1#0"]


@pytest.mark.parametrize(
    ("selection", "chosen"),
    [
        ("all", [0, 1, 2, 3]),
        ("last", [3]),
        ("layer1", [0, 1, 2]),
        ("layer10", [3]),
        ("layer1.3", [1, 2]),
        ("layer1.3#1", [2]),
        (["layer1.1#0"], [0]),
        (["layer10", "layer1.1"], [0, 3]),
        (("layer1", "layer1.3#0"), [0, 1, 2]),
        (iter(["layer10.1#0", "layer1.3#0"]), [1, 3]),
        (lambda site: site.op == "hardtanh", [1, 2]),
        (lambda site: site.neurons == 5, [3]),
    ],
)
def test_sites_are_selected(selection, chosen):
    sites = discover(LAYERS.model(), LAYERS.inputs())
    assert [site.name for site in sites] == NAMES
    selected = sites.select(selection)
    assert [site.name for site in selected] == [NAMES[i] for i in chosen]
    assert selected.model is sites.model


@pytest.mark.parametrize(
    "selection",
    ["layer", "layer2", "layer1.1#1", "head", "", ["layer1", "nowhere"], [], lambda site: False],
)
def test_a_selection_that_fits_nothing_lists_the_names(selection):
    with pytest.raises(InputError, match=", ".join(NAMES)):
        discover(LAYERS.model(), LAYERS.inputs()).select(selection)


def test_sites_that_are_not_selected_stay_relus():
    model, x = LAYERS.model(), LAYERS.inputs()
    sites = discover(model, x).select(["layer1.1", "layer10"])
    half = [torch.full((len(x), size), 0.5, dtype=x.dtype) for size in (6, 5)]
    output, seen = sites.gated(x, half)
    first = model.layer1[0](x)
    second = F.hardtanh(model.layer1[2](first / 2))
    third = model.layer10[0](second)
    torch.testing.assert_close(seen, [first, third])
    torch.testing.assert_close(output, model.head(third / 2))


def test_run_replaces_each_hinge_by_what_it_is_told():
    model, x = LAYERS.model(), LAYERS.inputs()
    sites = discover(model, x)
    asked = []

    def replacement(i: int, z: Tensor) -> Tensor:
        asked.append((i, tuple(z.shape)))
        return torch.full_like(z, i)

    output = sites.run(x, replacement)
    assert asked == [(0, (40, 6)), (1, (40, 6)), (2, (40, 6)), (3, (40, 5))]
    torch.testing.assert_close(output, model.head(torch.full((40, 5), 3.0, dtype=x.dtype)))


def test_join_split_parts_and_spread_fit_together():
    case = AFFINE["residual, shared in-place ReLU"]
    sites = discover(case.model(), case.inputs())
    shapes = [shape for _, _, shape in case.sites]
    tensors = [torch.randn(3, *shape) for shape in shapes]
    joined = sites.join(tensors)
    assert joined.shape == (3, sites.neurons) == (3, 2 * 32 + 2 * 48)
    assert all(torch.equal(a, b) for a, b in zip(sites.split(joined), tensors, strict=True))
    assert torch.equal(sites.join(sites.split(joined)), joined)
    assert torch.equal(torch.cat(sites.parts(joined), 1), joined)
    for part, tensor in zip(sites.parts(joined), tensors, strict=True):
        assert torch.equal(part, tensor.flatten(1))
    by_site = torch.randn(3, len(sites))
    spread = sites.spread(by_site)
    assert spread.shape == joined.shape
    for i, whole in enumerate(sites.split(spread)):
        assert (whole == by_site[:, i].reshape(3, 1, 1, 1)).all()
