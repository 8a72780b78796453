"""Norms of hyperplane normals against products of matrices and full Jacobians."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from facetwalk import normals
from facetwalk.normals import EXACT_UP_TO, averaged, distances, exact, probed, resolve
from facetwalk.sites import Sites, discover, pattern_of, tangents
from facetwalk.streams import Streams
from facetwalk.zoo import random_network
from facetwalk.zoo.stacked import StackedNetworks

SIZES = (5, 8, 7, 6, 1)
either_way = pytest.mark.parametrize("affine", [True, False], ids=["differences", "forward mode"])


def net(seed: int = 0, sizes: tuple[int, ...] = SIZES) -> nn.Sequential:
    return random_network(sizes, seed).double()


def normal(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def streams(rows: int) -> Streams:
    return Streams.from_seeds(torch.full((rows,), 3), torch.arange(rows))


def soft_gates(sites: Sites, rows: int) -> list[Tensor]:
    """Random numbers in (0, 1), with 0 and 1 among them."""
    numbers = [normal(rows, *site.shape, seed=i) for i, site in enumerate(sites)]
    return [(0.5 + number).clamp(0, 1) for number in numbers]


def by_matrices(model: nn.Sequential, gates: list[Tensor]) -> list[Tensor]:
    """`P^(i) = W_i diag(g_{i-1}) W_{i-1} ... diag(g_1) W_1` of each row, then norms of its rows."""
    weights = [layer.weight.detach() for layer in model if isinstance(layer, nn.Linear)]
    result = [torch.empty_like(gate) for gate in gates]
    for row in range(len(gates[0])):
        product = weights[0]
        for i, gate in enumerate(gates):
            result[i][row] = product.square().sum(1).sqrt()
            product = weights[i + 1] @ torch.diag(gate[row]) @ product
    return result


def by_jacobian(sites: Sites, x: Tensor, gates: list[Tensor]) -> list[Tensor]:
    result = [torch.empty_like(gate) for gate in gates]
    for row in range(len(x)):
        own = [gate[row : row + 1] for gate in gates]
        jacobians = torch.autograd.functional.jacobian(
            lambda x, own=own: tuple(sites.gated(x, own)[1]), x[row : row + 1]
        )
        for norms, jacobian in zip(result, jacobians, strict=True):
            norms[row] = jacobian[0].flatten(norms.ndim - 1).norm(dim=-1)
    return result


def built(build) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return build().double().eval()


def conv_net() -> nn.Module:
    def build() -> nn.Module:
        layers = [nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Conv2d(3, 4, 2, stride=2), nn.LeakyReLU(0.2)]
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(16, 1), nn.ReLU())

    return built(build)


def transformer() -> nn.Module:
    return built(lambda: nn.TransformerEncoderLayer(4, 2, 6, batch_first=True))


@either_way
@settings(max_examples=15, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6))
def test_exact_norms_are_those_of_the_product_of_matrices(affine, seed):
    model, x = net(seed), normal(4, 5, seed=seed)
    sites = discover(model, x)
    gates = soft_gates(sites, 4)
    for found, expected in zip(
        exact(sites, x, gates, affine), by_matrices(model, gates), strict=True
    ):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=0)


@pytest.mark.parametrize(
    ("build", "shape", "affine"),
    [
        pytest.param(conv_net, (1, 6, 6), True, id="conv, differences"),
        pytest.param(conv_net, (1, 6, 6), False, id="conv, forward mode"),
        pytest.param(transformer, (3, 4), False, id="transformer"),
    ],
)
def test_exact_norms_are_those_of_the_rows_of_the_jacobian(build, shape, affine):
    model, x = build(), normal(3, *shape)
    sites = discover(model, x)
    gates = soft_gates(sites, 3)
    for found, expected in zip(
        exact(sites, x, gates, affine), by_jacobian(sites, x, gates), strict=True
    ):
        assert expected.max() > 0.1
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


def test_sites_that_are_not_selected_keep_their_own_pattern():
    model, x = net(), normal(4, 5)
    sites = discover(model, x)
    with torch.no_grad():
        gates = pattern_of(sites, sites.pre_activations(x)[1]).gates(x.dtype)
    (found,) = exact(sites.select("last"), x, gates[-1:])
    torch.testing.assert_close(found, by_matrices(model, gates)[-1])


class _Tripled(torch.autograd.Function):
    """With a forward-mode derivative, but one that torch cannot vectorise."""

    @staticmethod
    def forward(ctx, x):
        return 3 * x

    @staticmethod
    def backward(ctx, *of_outputs):
        return 3 * of_outputs[0]

    @staticmethod
    def jvp(ctx, *of_inputs):
        return 3 * of_inputs[0]


class Tripled(nn.Sequential):
    def forward(self, input: Tensor) -> Tensor:
        return super().forward(_Tripled.apply(input))


def tripled() -> nn.Module:
    return Tripled(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 2), nn.ReLU())


def pooled() -> nn.Module:
    layers = [nn.Conv2d(1, 3, 3), nn.ReLU(inplace=True), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Conv2d(3, 2, 2), nn.ReLU(inplace=True))


@pytest.mark.parametrize(
    ("build", "shape"), [(pooled, (1, 8, 8)), (tripled, (6,))], ids=["pools", "own derivative"]
)
def test_probes_are_the_lengths_of_single_moves(build, shape):
    """Whether or not all directions can share the pass at the point itself."""
    model, x = built(build), normal(3, *shape)
    sites = discover(model, x)
    gates = soft_gates(sites, 3)
    signs = streams(3).signs((4, *shape), x.dtype)
    moves = [tangents(sites, x, gates, signs[:, k]) for k in range(4)]
    found = probed(sites, x, gates, streams(3), 4)
    for norm, *of_site in zip(found, *moves, strict=True):
        expected = torch.stack(of_site).square().mean(0).sqrt()
        assert expected.max() > 1e-3
        torch.testing.assert_close(norm, expected)


def test_directions_share_the_pass_at_the_point():
    """The model runs once, on the one point, for derivatives along four directions."""
    model, x = built(pooled), normal(1, 1, 8, 8)
    sites = discover(model, x)
    seen: list[int] = []
    handle = model[0].register_forward_pre_hook(lambda part, inputs: seen.append(len(inputs[0])))
    probed(sites, x, soft_gates(sites, 1), streams(1), 4)
    handle.remove()
    assert seen == [1]


@either_way
def test_each_row_has_its_own_network(affine):
    nets, x = [net(seed) for seed in range(3)], normal(3, 5)
    stacked = StackedNetworks(nets).double()
    sites = discover(stacked, x)
    gates = soft_gates(sites, 3)
    found = exact(sites, x, gates, affine)
    for row, model in enumerate(nets):
        expected = by_matrices(model, [gate[row : row + 1] for gate in gates])
        for norms, one in zip(found, expected, strict=True):
            torch.testing.assert_close(norms[row : row + 1], one)


@either_way
@pytest.mark.parametrize("method", ["exact", "probed"])
def test_a_batch_gives_what_single_rows_give(method, affine):
    model, x, random = conv_net(), normal(3, 1, 6, 6), streams(3)
    sites = discover(model, x)
    gates = soft_gates(sites, 3)

    def norms(rows: slice) -> list[Tensor]:
        own = [gate[rows] for gate in gates]
        if method == "exact":
            return exact(sites, x[rows], own, affine)
        return probed(sites, x[rows], own, Streams(random.keys[rows]), 5, affine)

    together = norms(slice(None))
    for row in range(3):
        for several, one in zip(together, norms(slice(row, row + 1)), strict=True):
            torch.testing.assert_close(several[row], one[0], rtol=1e-9, atol=0)


@either_way
@pytest.mark.parametrize("rows_of_a_pass", [1, 7, 30])
def test_small_passes_give_the_same(monkeypatch, affine, rows_of_a_pass):
    model, x = net(), normal(3, 5)
    sites = discover(model, x)
    gates = soft_gates(sites, 3)
    expected = exact(sites, x, gates), probed(sites, x, gates, streams(3), 11)
    monkeypatch.setattr(normals, "_PASS_ROWS", rows_of_a_pass)
    found = exact(sites, x, gates, affine), probed(sites, x, gates, streams(3), 11, affine)
    torch.testing.assert_close(found, expected)


@either_way
def test_probes_converge_to_the_exact_norms(affine):
    """`(P v)^2` has at most variance `2 ||P||^4`, so its mean over k is off by `sqrt(2 / k)`."""
    model, x = net(), normal(1, 5)
    sites = discover(model, x)
    gates = soft_gates(sites, 1)
    right = sites.join(exact(sites, x, gates))
    rows, probes = 2000, 8
    copies = [gate.expand(rows, -1) for gate in gates]
    estimates = sites.join(probed(sites, x.expand(rows, -1), copies, streams(rows), probes, affine))
    relative = estimates.square() / right.square()
    assert (relative.mean(0) - 1).abs().max() < 5 * math.sqrt(2 / (rows * probes))
    spread = (estimates / right).std(0)
    assert (spread < 1.1 / math.sqrt(2 * probes)).all()
    assert spread.mean() > 0.5 / math.sqrt(2 * probes)


@pytest.mark.parametrize("probes", [50, 800])
def test_more_probes_come_closer(probes):
    model, x = conv_net(), normal(2, 1, 6, 6)
    sites = discover(model, x)
    gates = soft_gates(sites, 2)
    right = sites.join(exact(sites, x, gates))
    error = sites.join(probed(sites, x, gates, streams(2), probes)) / right - 1
    typical = error.square().mean().sqrt() * math.sqrt(2 * probes)
    assert 0.4 < typical < 1.5


def test_one_probe_is_the_length_of_one_move():
    model, x = net(), normal(2, 5)
    sites = discover(model, x)
    every_sign = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0]).double()] * 5)
    possible = (every_sign @ model[0].weight.detach().T).abs()
    found, *_ = probed(sites, x, soft_gates(sites, 2), streams(2), 1)
    for row in found:
        assert (possible - row).abs().amax(1).min() < 1e-12


def scaled_by_jacobian(sites: Sites, x: Tensor, gates: list[Tensor], scale: Tensor) -> list[Tensor]:
    """`||P_j * scale||` of each row, from the Jacobian with respect to `x / scale`."""
    result = [torch.empty_like(gate) for gate in gates]
    for row in range(len(x)):
        own = [gate[row : row + 1] for gate in gates]
        unit = scale.expand_as(x)[row : row + 1]
        jacobians = torch.autograd.functional.jacobian(
            lambda u, own=own, unit=unit: tuple(sites.gated(u * unit, own)[1]),
            x[row : row + 1] / unit,
        )
        for norms, jacobian in zip(result, jacobians, strict=True):
            norms[row] = jacobian[0].flatten(norms.ndim - 1).norm(dim=-1)
    return result


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(8)


SCALES = {
    "one for all": lambda x: torch.full((1, *[1] * (x.ndim - 1)), 0.3).double(),
    "one a row": lambda x: torch.rand(len(x), *[1] * (x.ndim - 1), generator=seeded()).double() + 1,
    "one a coordinate": lambda x: torch.rand(1, *x.shape[1:], generator=seeded()).double() + 0.1,
    "its own for each": lambda x: 10 ** (4 * torch.rand(x.shape, generator=seeded()).double() - 2),
}


@either_way
@pytest.mark.parametrize("kind", SCALES)
@pytest.mark.parametrize(
    ("build", "shape"), [(net, (5,)), (conv_net, (1, 6, 6))], ids=["fully connected", "conv"]
)
def test_a_scale_is_the_unit_in_which_inputs_are_measured(build, shape, kind, affine):
    model, x = build(), normal(3, *shape)
    sites = discover(model, x)
    gates, scale = soft_gates(sites, 3), SCALES[kind](x)
    expected = scaled_by_jacobian(sites, x, gates, scale)
    for found, right in zip(exact(sites, x, gates, affine, scale), expected, strict=True):
        torch.testing.assert_close(found, right, rtol=1e-8, atol=1e-12)


@either_way
@pytest.mark.parametrize("kind", SCALES)
def test_scaled_probes_converge_to_the_scaled_norms(kind, affine):
    model, x = net(), normal(2, 5)
    sites = discover(model, x)
    gates, scale = soft_gates(sites, 2), SCALES[kind](x)
    right = sites.join(scaled_by_jacobian(sites, x, gates, scale))
    found = sites.join(probed(sites, x, gates, streams(2), 4000, affine, scale))
    assert (found / right - 1).abs().max() < 6 / math.sqrt(2 * 4000)


@either_way
@pytest.mark.parametrize("size", [1e-6, 1 / 255, 1.0, 1e6])
def test_no_digits_are_lost_in_single_precision(size, affine):
    model, x = net().float(), normal(3, 5).float()
    sites = discover(model, x)
    gates = [gate.float() for gate in soft_gates(sites, 3)]
    plain = exact(sites, x, gates, affine)
    scaled = exact(sites, x, gates, affine, torch.full((1, 1), size))
    for a, b in zip(plain, scaled, strict=True):
        torch.testing.assert_close(b / size, a, rtol=1e-4, atol=1e-6)


def test_a_scale_of_zero_leaves_no_normals():
    model, x = net(), normal(2, 5)
    sites = discover(model, x)
    gates = soft_gates(sites, 2)
    nothing = torch.zeros(1, 5, dtype=torch.float64)
    for norms in exact(sites, x, gates, True, nothing):
        assert not norms.any()


def test_averages_with_equal_shares_are_the_mean_of_squares():
    estimates = normal(7, 3, 4).abs()
    norms = estimates[0]
    for count in range(2, 8):
        norms = averaged(norms, estimates[count - 1], 1 / count)
        torch.testing.assert_close(norms, estimates[:count].square().mean(0).sqrt())


def test_a_share_of_one_keeps_the_latest_estimate_and_changes_neither():
    first, second = normal(2, 3, 4).abs()
    kept = first.clone(), second.clone()
    torch.testing.assert_close(averaged(first, second, 1.0), second)
    assert torch.equal(first, kept[0])
    assert torch.equal(second, kept[1])


@pytest.mark.parametrize(
    ("method", "inputs", "expected"),
    [
        ("auto", 1, "exact"),
        ("auto", EXACT_UP_TO, "exact"),
        ("auto", EXACT_UP_TO + 1, "probed"),
        ("exact", EXACT_UP_TO + 1, "exact"),
        ("probed", 1, "probed"),
    ],
)
def test_auto_depends_on_the_number_of_inputs(method, inputs, expected):
    assert resolve(method, inputs) == expected


def test_distances_to_the_hyperplanes_of_one_layer():
    model, x = net(0, (5, 8, 1)), normal(6, 5)
    weight, bias = model[0].weight.detach(), model[0].bias.detach()
    (found,) = distances(model, x)
    for row in range(6):
        for j in range(8):
            distance = abs(weight[j] @ x[row] + bias[j]) / weight[j].norm()
            assert found[row, j].item() == pytest.approx(distance.item(), rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_moving_by_the_distance_reaches_the_hyperplane(seed):
    model, x = net(seed), normal(1, 5, seed=seed)
    sites = discover(model, x)
    with torch.no_grad():
        gates = pattern_of(sites, sites.pre_activations(x)[1]).gates(x.dtype)
    for i, distance in enumerate(distances(model, x)):
        assert distance.isfinite().any()
        for j in distance[0].isfinite().nonzero().flatten().tolist():
            leaf = x.clone().requires_grad_()
            h = sites.gated(leaf, gates)[1][i][0, j]
            (normal_vector,) = torch.autograd.grad(h, leaf)
            step = -h.sign().item() * distance[0, j] * normal_vector / normal_vector.norm()
            there = sites.gated(x + step, gates)[1][i][0, j]
            assert h.abs() > 1e-6
            assert there.item() == pytest.approx(0, abs=1e-9)


def test_a_neuron_that_does_not_depend_on_the_input_is_infinitely_far():
    model = net(0, (2, 2, 2, 1))
    model[0].weight.data, model[0].bias.data = torch.eye(2).double(), torch.zeros(2).double()
    model[2].weight.data = torch.tensor([[3.0, 0.0], [0.0, 4.0]]).double()
    model[2].bias.data = torch.tensor([1.0, 2.0]).double()
    x = torch.tensor([[2.0, -1.0], [-1.0, -1.0]], dtype=torch.float64)
    first, second = distances(model, x)
    assert first.tolist() == [[2, 1], [1, 1]]
    assert second.tolist() == [[pytest.approx(7 / 3), torch.inf], [torch.inf, torch.inf]]
