"""The activation-descent gradient against the chain rule, multiplied out by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import facetwalk as fw
from facetwalk.gradients import gradient_of, leaking_outputs
from facetwalk.sites import Sites, discover
from facetwalk.solvers import Task
from facetwalk.streams import Streams
from facetwalk.zoo import StackedNetworks, random_network


def draw(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def built(build: Callable[[], nn.Module]) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return build().double().eval()


def some_norms(sites: Sites, rows: int, seed: int = 0) -> list[Tensor]:
    """Positive numbers: the formula holds whatever the norms are."""
    return [0.2 + draw(rows, *site.shape, seed=seed + i).abs() for i, site in enumerate(sites)]


def leaking_gradient(
    sites: Sites, x: Tensor, norms: list[Tensor], width: float | Tensor
) -> tuple[Tensor, Tensor]:
    """Outputs, and the gradient of the sum of each row's outputs."""
    outputs, _, gradient = gradient_of(
        lambda leaf: leaking_outputs(sites, leaf, norms, width), lambda y: y.flatten(1).sum(1), x
    )
    return outputs.detach(), gradient


def k(h: float, norm: float, width: float) -> float:
    return 1.0 if h > 0 else math.exp(h / (width * norm))


class Activation:
    """A function, and its slope at a number by the kernels of its hinges."""

    def __init__(self, function, offsets: list[float], slope: Callable[..., float]) -> None:
        self.function, self.offsets, self.slope = function, offsets, slope


ACTIVATIONS = {
    "relu": Activation(torch.relu, [0], lambda k: k),
    "in-place relu": Activation(lambda h: h.relu_(), [0], lambda k: k),
    "leaky relu": Activation(lambda h: F.leaky_relu(h, 0.1), [0], lambda k: 0.1 + 0.9 * k),
    "relu6": Activation(lambda h: F.relu6(4 * h) / 4, [0, 6], lambda low, high: low - high),
    "clamp": Activation(lambda h: h.clamp(-0.5, 0.75), [-0.5, 0.75], lambda low, high: low - high),
    "clamp below": Activation(lambda h: h.clamp(max=0.5), [0.5], lambda k: 1 - k),
    "abs": Activation(torch.abs, [0], lambda k: 2 * k - 1),
    "in-place leaky": Activation(
        lambda h: F.leaky_relu(h, 0.3, inplace=True), [0], lambda k: 0.3 + 0.7 * k
    ),
}


class Layers(nn.Module):
    """`W_L a(... a(W_1 x + b_1) ...) + b_L` with an activation of one's choice."""

    def __init__(self, sizes: tuple[int, ...], activation: Callable[[Tensor], Tensor], seed: int):
        super().__init__()
        pairs = list(pairwise(sizes))
        self.weights = [draw(b, a, seed=seed + i) / a**0.5 for i, (a, b) in enumerate(pairs)]
        self.biases = [draw(b, seed=seed + 50 + i) / 2 for i, (_, b) in enumerate(pairs)]
        self.activation = activation
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = x @ weight.T + bias
            x = self.activation(x) if i + 1 < len(self.weights) else x
        return x


def by_hand(
    net: Layers, name: str, x: Tensor, norms: list[Tensor], width: float
) -> tuple[Tensor, Tensor]:
    """Output and gradient of one row, `(n,)`, by sums of products of numbers."""
    activation, scale = ACTIVATIONS[name], 4.0 if name == "relu6" else 1.0
    hinges, h, slopes = len(activation.offsets), x, []
    for i, (weight, bias) in enumerate(zip(net.weights, net.biases, strict=True)):
        h = weight @ h + bias
        if i + 1 == len(net.weights):
            break
        of_layer = norms[i * hinges : (i + 1) * hinges]
        slopes.append(
            torch.tensor(
                [
                    activation.slope(
                        *(
                            k(scale * value - offset, norm[j].item(), width)
                            for offset, norm in zip(activation.offsets, of_layer, strict=True)
                        )
                    )
                    for j, value in enumerate(h.tolist())
                ],
                dtype=torch.float64,
            )
        )
        h = activation.function(h.clone())
    row = net.weights[-1].sum(0)
    for weight, slope in zip(net.weights[-2::-1], slopes[::-1], strict=True):
        row = (row * slope) @ weight
    return h, row


@pytest.mark.parametrize("name", ACTIVATIONS)
@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    sizes=st.lists(st.integers(1, 6), min_size=3, max_size=5).map(tuple),
    width=st.floats(0.02, 5),
)
def test_gradient_is_the_chain_rule_with_kernels(name, seed, sizes, width):
    net = Layers(sizes, ACTIVATIONS[name].function, seed)
    x = draw(3, sizes[0], seed=seed)
    sites = discover(net, x)
    norms = some_norms(sites, 3, seed)
    outputs, gradient = leaking_gradient(sites, x, norms, width)
    torch.testing.assert_close(outputs, net(x))
    for b in range(3):
        value, expected = by_hand(net, name, x[b], [norm[b] for norm in norms], width)
        torch.testing.assert_close(outputs[b], value)
        torch.testing.assert_close(gradient[b], expected, rtol=1e-9, atol=1e-12)


def kernel(h: Tensor, norm: Tensor, width: float) -> Tensor:
    return torch.where(h > 0, 1.0, torch.exp(h.clamp(max=0) / (width * norm)))


def matrix_of(layer: nn.Module, shape: tuple[int, ...]) -> Tensor:
    """The matrix of an affine layer on flattened tensors, column by column."""
    basis = torch.eye(math.prod(shape), dtype=torch.float64).reshape(-1, *shape)
    with torch.no_grad():
        return (layer(basis) - layer(torch.zeros_like(basis))).flatten(1).T


def test_convolution():
    net = built(
        lambda: nn.Sequential(
            nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Conv2d(2, 3, 2), nn.ReLU(), nn.Flatten()
        )
    )
    x = draw(4, 1, 5, 5)
    sites = discover(net, x)
    first, second = some_norms(sites, 4)
    outputs, gradient = leaking_gradient(sites, x, [first, second], 0.4)
    assert torch.equal(outputs, net(x))
    a, b = matrix_of(net[0], (1, 5, 5)), matrix_of(net[2], (2, 3, 3))
    h = net[0](x)
    g = net[2](torch.relu(h))
    k_1, k_2 = kernel(h, first, 0.4).flatten(1), kernel(g, second, 0.4).flatten(1)
    expected = ((k_2 @ b) * k_1) @ a
    torch.testing.assert_close(gradient, expected.reshape(x.shape))


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer, self.act = nn.Linear(5, 7), nn.Linear(7, 5), nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        h = x + self.outer(self.act(self.inner(x)))
        h += 1
        return self.act(h)


def test_residual_connection_and_in_place_relus_of_one_module():
    net = built(Residual)
    x = draw(4, 5)
    kept = x.clone()
    sites = discover(net, x)
    first, second = some_norms(sites, 4)
    outputs, gradient = leaking_gradient(sites, x, [first, second], 0.7)
    assert torch.equal(outputs, net(x))
    h = net.inner(x)
    g = 1 + x + net.outer(torch.relu(h))
    through = kernel(g, second, 0.7)
    inside = ((through @ net.outer.weight) * kernel(h, first, 0.7)) @ net.inner.weight
    torch.testing.assert_close(gradient, through + inside)
    assert torch.equal(x, kept)


class Shared(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.act = nn.Linear(4, 4), nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(self.act(self.layer(self.act(self.layer(x)))))


def test_each_call_of_a_shared_module_has_its_own_norms():
    net = built(Shared)
    x = draw(3, 4)
    sites = discover(net, x)
    first, second = some_norms(sites, 3)
    _, gradient = leaking_gradient(sites, x, [first, second], 0.5)
    w = net.layer.weight
    h = net.layer(x)
    g = net.layer(torch.relu(h))
    row = (w.sum(0) * kernel(g, second, 0.5)) @ w
    torch.testing.assert_close(gradient, (row * kernel(h, first, 0.5)) @ w)


NETWORKS = {
    "fully connected": (lambda: random_network((6, 9, 8, 3), 1).double(), (6,)),
    "convolutional": (
        lambda: built(
            lambda: nn.Sequential(
                nn.Conv2d(1, 2, 3), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(32, 3), nn.ReLU6()
            )
        ),
        (1, 6, 6),
    ),
    "residual, in place": (lambda: built(Residual), (5,)),
    "shared": (lambda: built(Shared), (4,)),
    "max-pool": (
        lambda: built(
            lambda: nn.Sequential(nn.Conv1d(1, 3, 3), nn.ReLU(), nn.MaxPool1d(2), nn.Flatten())
        ),
        (1, 8),
    ),
    "transformer": (
        lambda: built(lambda: nn.TransformerEncoderLayer(4, 2, 6, batch_first=True)),
        (3, 4),
    ),
    "a network for each row": (
        lambda: StackedNetworks([random_network((6, 9, 8, 3), s).double() for s in range(5)]),
        (6,),
    ),
}
every_network = pytest.mark.parametrize(("make", "shape"), NETWORKS.values(), ids=NETWORKS)


def exact_gradient(net: nn.Module, x: Tensor) -> Tensor:
    leaf = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(net(leaf.clone()).sum(), leaf)
    return gradient


@every_network
def test_outputs_are_those_of_the_model_whatever_the_width(make, shape):
    net, x = make(), draw(5, *shape)
    sites = discover(net, x)
    for width in (1e-30, 0.3, 1e30):
        outputs, _ = leaking_gradient(sites, x, some_norms(sites, 5), width)
        torch.testing.assert_close(outputs, net(x), rtol=1e-12, atol=1e-12)


@every_network
def test_without_width_it_is_the_exact_gradient(make, shape):
    net, x = make(), draw(5, *shape)
    sites = discover(net, x)
    right, norms = exact_gradient(net, x), some_norms(sites, 5)
    for width in (1e-9, 1e-300, torch.full((5,), 1e-12, dtype=torch.float64)):
        torch.testing.assert_close(leaking_gradient(sites, x, norms, width)[1], right)
    errors = [
        (leaking_gradient(sites, x, norms, width)[1] - right).norm().item()
        for width in (1e-3, 0.3, 100)
    ]
    assert errors[0] < errors[1] < errors[2]


def test_with_endless_width_every_neuron_is_passed():
    net = random_network((5, 8, 7, 2), 3).double()
    x = draw(4, 5)
    sites = discover(net, x)
    _, gradient = leaking_gradient(sites, x, some_norms(sites, 4), 1e30)
    w_1, w_2, w_3 = (layer.weight for layer in net if isinstance(layer, nn.Linear))
    torch.testing.assert_close(gradient, (w_3 @ w_2 @ w_1).sum(0).expand(4, 5).detach())


@pytest.mark.parametrize("make", [float, torch.tensor, lambda w: torch.full((5,), w)])
def test_width_may_be_a_number_a_tensor_or_one_for_each_row(make):
    net, x = random_network((6, 9, 8, 3), 1).double(), draw(5, 6)
    sites = discover(net, x)
    norms = some_norms(sites, 5)
    _, expected = leaking_gradient(sites, x, norms, 0.25)
    assert (expected - exact_gradient(net, x)).abs().max() > 0.01
    assert torch.equal(leaking_gradient(sites, x, norms, make(0.25))[1], expected)


@every_network
def test_a_batch_is_what_its_rows_are_alone(make, shape):
    net, x = make(), draw(5, *shape)
    sites = discover(net, x)
    norms, widths = some_norms(sites, 5), torch.linspace(0.1, 2, 5, dtype=torch.float64)
    _, together = leaking_gradient(sites, x, norms, widths)
    for b in range(5):
        row = torch.tensor([b])
        own = sites.on(net.select(row)) if isinstance(net, StackedNetworks) else sites
        _, alone = leaking_gradient(own, x[row], [n[row] for n in norms], widths[b].item())
        torch.testing.assert_close(alone[0], together[b], rtol=1e-9, atol=1e-12)


def test_norms_of_one_row_serve_all():
    net, x = random_network((6, 9, 8, 3), 1).double(), draw(5, 6)
    sites = discover(net, x)
    one = some_norms(sites, 1)
    every = [norm.expand(5, -1) for norm in one]
    found = [leaking_gradient(sites, x, norms, 0.3)[1] for norms in (one, every)]
    assert torch.equal(*found)


@pytest.mark.parametrize("width", [1e-30, 0.4, 1e30, torch.tensor(0.4)])
def test_a_neuron_without_normal_passes_all_or_nothing(width):
    net = random_network((2, 3, 1), 0).double()
    net[0].weight.data = torch.tensor([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]]).double()
    net[0].bias.data = torch.tensor([-1.0, 2.0, 0.0]).double()
    x = draw(2, 2)
    sites = discover(net, x)
    norms = [torch.zeros(2, 3, dtype=torch.float64)]
    outputs, gradient = leaking_gradient(sites, x, norms, width)
    assert torch.equal(outputs, net(x))
    assert torch.isfinite(gradient).all()
    live = net[0](x)[:, 2:] > 0
    expected = torch.where(live, net[2].weight[0, 2], 0.0).expand(2, 2)
    torch.testing.assert_close(gradient, expected.detach())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_precision_is_the_models(dtype):
    net, x = random_network((6, 9, 8, 3), 1), draw(5, 6)
    sites = discover(net.double(), x)
    norms = some_norms(sites, 5)
    _, right = leaking_gradient(sites, x, norms, 0.4)
    sites = discover(net.to(dtype), x.to(dtype))
    outputs, found = leaking_gradient(sites, x.to(dtype), [n.to(dtype) for n in norms], 0.4)
    assert outputs.dtype == found.dtype == dtype
    tolerance = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 0.1}[dtype]
    assert (found.double() - right).norm() <= tolerance * right.norm()


def test_gradient_is_that_of_finite_differences():
    net, x = random_network((6, 9, 8, 3), 1).double(), draw(5, 6)
    _, losses, gradient = gradient_of(net, lambda y: y.square().sum(1), x)
    torch.testing.assert_close(losses, net(x).square().sum(1).detach())
    for i in range(6):
        h = torch.zeros(6, dtype=torch.float64)
        h[i] = 1e-7
        slope = (net(x + h).square().sum(1) - net(x - h).square().sum(1)) / 2e-7
        torch.testing.assert_close(gradient[:, i], slope.detach(), rtol=1e-5, atol=1e-5)


def test_gradients_that_are_no_numbers_count_as_zero():
    x = torch.tensor([[0.0, 4.0]], dtype=torch.float64)
    _, losses, gradient = gradient_of(lambda x: 0 * x.sqrt() + x, lambda y: y.sum(1), x)
    assert losses.tolist() == [4]
    assert gradient.tolist() == [[0, 1]]


@pytest.mark.parametrize("no_grad", [True, False])
def test_no_graph_is_kept_and_the_point_stays_as_it_is(no_grad):
    net, x = built(Residual), draw(5, 5)
    task = Task(
        net,
        fw.objectives.Guided(fw.objectives.Output(0), fw.objectives.Output(1)),
        fw.LinfBall(torch.zeros(1, 5, dtype=torch.float64), eps=1.0),
        Streams.from_seeds(torch.arange(5), torch.arange(5)),
    )
    kept = x.clone()
    sites, _ = task.sites(x)
    norms = some_norms(sites, 5)
    with torch.set_grad_enabled(not no_grad):
        for forward in (None, lambda x: leaking_outputs(sites, x, norms, 0.5)):
            value, loss, gradient = task.evaluate(x, forward)
            assert not any(t.requires_grad for t in (x, value, loss, gradient))
            torch.testing.assert_close(value, net(x)[:, 0].detach())
            torch.testing.assert_close(loss, net(x)[:, 1].detach())
    assert torch.equal(x, kept)
    assert x.grad is None
    assert (task.passes.forward, task.passes.backward) == (2, 2)


@every_network
def test_nothing_of_the_model_is_changed(make, shape):
    net, x = make(), draw(5, *shape)
    state = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    hooks = [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in net.modules()]
    versions = [p._version for p in net.parameters()]
    sites = discover(net, x)
    leaking_gradient(sites, x, some_norms(sites, 5), 0.4)
    assert all(torch.equal(tensor, state[name]) for name, tensor in net.state_dict().items())
    assert all(p.grad is None and p.requires_grad for p in net.parameters())
    assert [p._version for p in net.parameters()] == versions
    assert [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in net.modules()] == hooks
    torch.testing.assert_close(exact_gradient(net, x), exact_gradient(make(), x))
