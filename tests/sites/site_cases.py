"""Networks with ReLUs in every form, and where they are."""

from __future__ import annotations

import copy
import tempfile
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

from facetwalk.sites import Sites, pattern_of
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
