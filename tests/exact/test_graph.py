"""Extraction: matrices and bounds of networks of every kind, against the networks themselves."""

import pytest
import torch
from small_networks import network, residual
from torch import nn

import facetwalk as fw
from facetwalk.exact import maximize
from facetwalk.exact.backward_bounds import backward_bounds
from facetwalk.exact.dense import Dense
from facetwalk.exact.forward_bounds import planes_above
from facetwalk.exact.graph import Graph
from facetwalk.objectives import Output
from facetwalk.zoo import ResNet20


class Kin(nn.Module):
    """ReLU's kin, a product with constants, and a slice."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 6)
        self.scale = nn.Buffer(torch.tensor([1.0, -2.0, 0.5, 1.0, 3.0, -1.0]))

    def forward(self, x):
        z = nn.functional.leaky_relu(self.linear(x), 0.1) * self.scale
        return torch.cat([z[:, :3].clamp(-0.5, 0.7), z[:, 3:].abs() / 2], 1).mean(1, keepdim=True)


class TwoPaths(nn.Module):
    """The output sees the input and both hidden layers."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 5), nn.Linear(5, 4)

    def forward(self, x):
        a = torch.relu(self.first(x))
        b = torch.relu(self.second(a) + x)
        return torch.cat([a, b, x], 1)


def seeded(make):
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return make().eval()


CASES = {
    "linear": (lambda: network(4, 6, 5, 2), (4,)),
    "residual": (residual, (1, 4, 4)),
    "kin": (lambda: seeded(Kin), (4,)),
    "two paths": (lambda: seeded(TwoPaths), (4,)),
}


@pytest.mark.parametrize("name", CASES)
def test_bounds_hold_at_random_points(name):
    make, shape = CASES[name]
    net = make()
    graph = Graph.of(net, shape)
    dense = Dense.of(graph)
    inputs = torch.Size(shape).numel()
    random = torch.Generator().manual_seed(0)
    center = torch.randn(inputs, 20, generator=random, dtype=torch.float64)
    radius = torch.rand(inputs, 20, generator=random, dtype=torch.float64)
    twin = net.double()
    for goal in range(graph.outputs):
        goals = torch.full((20,), goal)
        planes = planes_above(dense, center - radius, center + radius, goals)
        for b in range(20):
            t = 2 * torch.rand(500, inputs, generator=random, dtype=torch.float64) - 1
            x = center[:, b] + radius[:, b] * t.sign() * t.abs().sqrt()
            with torch.no_grad():
                values = twin(x.view(-1, *shape)).flatten(1)[:, goal]
            assert (values <= x @ planes.slope[:, b] + planes.constant[b] + 1e-9).all()
            assert values.max() <= planes.bound[b] + 1e-9
    bounds = backward_bounds(graph, center[:, 0] - radius[:, 0], center[:, 0] + radius[:, 0])
    x = (center[:, 0] + radius[:, 0] * t).view(-1, *shape)
    output, seen = graph.sites.pre_activations(x)
    assert (output.flatten(1) <= bounds.outputs).all()
    for low, z, high in zip(bounds.low, seen, bounds.high, strict=True):
        assert (low <= z.flatten(1)).all()
        assert (z.flatten(1) <= high).all()


def test_both_kinds_of_bounds_agree_with_one_hidden_layer():
    graph = Graph.of(network(3, 9, 2), (3,))
    low = torch.tensor([-1.0, -0.5, 0.1], dtype=torch.float64)
    back = backward_bounds(graph, low, low + 0.8).outputs
    columns = low[:, None].expand(3, 2)
    planes = planes_above(Dense.of(graph), columns, columns + 0.8, torch.arange(2))
    assert torch.allclose(back, planes.bound, atol=1e-8)


def test_a_deep_residual_network_is_bounded_over_a_point():
    net = seeded(ResNet20)
    graph = Graph.of(net, (3, 32, 32))
    assert len(graph.widths) == 19
    rows = torch.eye(10, dtype=torch.float64)
    pulled = graph.pull_back(-1, rows)
    assert pulled.hidden[-1].shape == (10, 64 * 8 * 8)


def test_onnx_networks_are_extracted(tmp_path):
    onnx = pytest.importorskip("onnx")
    from facetwalk.zoo import load_onnx

    helper = onnx.helper
    weight = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    nodes = [
        helper.make_node("Gemm", ["x", "w"], ["h"], transB=1),
        helper.make_node("Relu", ["h"], ["a"]),
        helper.make_node("ReduceMean", ["a"], ["y"], axes=[1], keepdims=1),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", 1, ["n", 3])],
        [helper.make_tensor_value_info("y", 1, ["n", 1])],
        [helper.make_tensor("w", 1, [4, 3], weight.flatten().tolist())],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, tmp_path / "net.onnx")
    loaded = load_onnx(tmp_path / "net.onnx")
    dense = Dense.of(Graph.of(loaded.model, (3,)))
    x = torch.randn(3, 7, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    expected = (weight.double() @ x).clamp(min=0).mean(0)
    assert torch.allclose(dense(x)[0], expected)


class Unseen(nn.Module):
    """A network whose `part` autograd does not see as it is."""

    def __init__(self, part):
        super().__init__()
        self.part = part

    def forward(self, x):
        return torch.relu(x - 0.5).sum(1, keepdim=True) + self.part(x)


def without_gradients(x):
    with torch.no_grad():
        return torch.relu(x).sum(1, keepdim=True)


PARTS = {
    "without gradients": without_gradients,
    "detached": lambda x: torch.relu(x + 3).sum(1, keepdim=True).detach(),
    "off at random points": lambda x: torch.relu(x - 2).sum(1, keepdim=True).detach(),
    "another scale": lambda x: 5 * x[:, :1] if x.max() > 2.0 else x[:, :1],
    "other rows": lambda x: x[:, :1] - x[:, :1].mean(0),
}


@pytest.mark.parametrize("part", PARTS)
def test_what_autograd_does_not_see_is_refused(part):
    """Also where linear bounds would settle the threshold, and no program is built."""
    space = fw.Box(1.0, 3.0, shape=(4,))
    with pytest.raises(fw.ModelError, match="between its ReLUs the network is not affine"):
        maximize(Unseen(PARTS[part]).eval(), space, Output(0), threshold=1000.0)


def added_in_place(x):
    hidden = torch.relu(x)
    hidden += x
    return hidden


def weights_from_data(x):
    return nn.functional.conv1d(x[:, None], x[:1, None, :2]).flatten(1)


@pytest.mark.parametrize(
    ("function", "name"), [(added_in_place, "CopySlices"), (weights_from_data, "Convolution")]
)
def test_what_is_not_known_before_or_after_a_hinge_is_named(function, name):
    with pytest.raises(fw.ModelError, match=f"the network uses {name} where nothing is proven"):
        Graph.of(Unknown(function).eval(), (4,))


class Unknown(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(torch.relu(x))


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (torch.sigmoid, "Sigmoid"),
        (lambda x: x.softmax(1), "Softmax"),
        (lambda x: x * x, "Mul"),
        (lambda x: 1 / (1 + x), "Reciprocal"),
        (lambda x: x / (1 + x), "Div"),
        (lambda x: nn.functional.max_pool1d(x[:, None], 2), "MaxPool|Squeeze"),
    ],
)
def test_functions_of_other_kinds_are_named(function, name):
    with pytest.raises(fw.ModelError, match=f"the network uses \\w*({name})"):
        Graph.of(Unknown(function).eval(), (4,))
