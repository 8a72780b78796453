"""The paper's equations, each against the formula written out neuron by neuron."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from facetwalk import surrogate
from facetwalk.sites import Sites, discover
from facetwalk.zoo import random_network

SIZES = (4, 7, 6, 5, 3)
seeds = st.integers(0, 10**6)
few = settings(max_examples=25, deadline=None, derandomize=True)
both_reductions = pytest.mark.parametrize("reduction", ["sum", "max"])


def normal(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def uniform(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(*shape, dtype=torch.float64, generator=generator)


def network(seed: int = 0, sizes: tuple[int, ...] = SIZES, rows: int = 5):
    """A random network, inputs, its sites and its pre-activations."""
    model, x = random_network(sizes, seed).double(), normal(rows, sizes[0], seed=seed)
    sites = discover(model, x)
    with torch.no_grad():
        return model, x, sites, sites.pre_activations(x)[1]


def output_k(k: int):
    return lambda outputs: outputs[:, k]


def smooth(outputs: Tensor) -> Tensor:
    """An objective that is not linear."""
    return -torch.nn.functional.log_softmax(outputs, 1)[:, 0]


def hat_f(model: nn.Sequential, x: Tensor, nu: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """`nndef2` for one input: the output and the pre-activations."""
    linear = [layer for layer in model if isinstance(layer, nn.Linear)]
    h = [linear[0].weight @ x + linear[0].bias]
    for layer, gate in zip(linear[1:], nu, strict=True):
        h.append(layer.weight @ torch.diag(gate) @ h[-1] + layer.bias)
    return h[-1].detach(), [z.detach() for z in h[:-1]]


def neurons(gates: list[Tensor]) -> Iterator[tuple[int, int]]:
    return ((i, j) for i, gate in enumerate(gates) for j in range(gate.shape[-1]))


def with_gate(nu: list[Tensor], i: int, j: int, value: float) -> list[Tensor]:
    changed = [gate.clone() for gate in nu]
    changed[i][j] = value
    return changed


def row_of(tensors: list[Tensor], row: int) -> list[Tensor]:
    return [tensor[row] for tensor in tensors]


@pytest.mark.parametrize("alpha", [1.0, 20.0, 2000.0])
def test_sigmoid_is_the_papers(alpha):
    etas = [0.0, 0.3, 0.499, 0.5, 0.51, 1.0]
    found = surrogate.sigmoid(torch.tensor(etas, dtype=torch.float64), alpha).tolist()
    expected = [1 / (1 + math.exp(min(-alpha * (eta - 0.5), 700))) for eta in etas]
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-300)
    assert found[3] == 0.5


@few
@given(seeds)
def test_proposition_5_1_holds_for_feasible_gates(seed):
    model, x, sites, h = network(seed)
    nus = [(z >= 0).double() for z in h]
    with torch.no_grad():
        plain, gated = model(x), sites.gated(x, nus)[0]
    torch.testing.assert_close(gated, plain, rtol=1e-12, atol=1e-12)
    for row in range(len(x)):
        by_hand, _ = hat_f(model, x[row], row_of(nus, row))
        torch.testing.assert_close(by_hand, plain[row], rtol=1e-12, atol=1e-12)


@few
@given(seeds)
def test_proposition_5_1_fails_for_infeasible_gates(seed):
    """In the last layer a wrong gate changes output k by `|h W_kj|`; others may cancel."""
    model, x, sites, h = network(seed)
    weight = model[-1].weight.detach()
    nus = [(z >= 0).double() for z in h]
    for j in range(SIZES[-2]):
        flipped = [*nus[:-1], nus[-1].clone()]
        flipped[-1][:, j] = 1 - flipped[-1][:, j]
        with torch.no_grad():
            change = (sites.gated(x, flipped)[0] - model(x)).abs()
        torch.testing.assert_close(change, h[-1][:, j : j + 1].abs() * weight[:, j].abs())
        assert (change > 0).all()


@pytest.mark.parametrize(
    ("h", "eta", "feasible"),
    [
        (2.0, 1.0, True),
        (2.0, 0.5, True),
        (2.0, 0.4999, False),
        (2.0, 0.0, False),
        (-2.0, 0.0, True),
        (-2.0, 0.4999, True),
        (-2.0, 0.5, False),
        (-2.0, 1.0, False),
        (0.0, 0.0, True),
        (0.0, 1.0, True),
        (1e-300, 0.0, False),
    ],
)
def test_feasible_gates_agree_with_the_pattern(h, eta, feasible):
    tensors = (torch.tensor([[value]], dtype=torch.float64) for value in (h, eta))
    assert surrogate.is_feasible(*tensors).tolist() == [[feasible]]


def test_binary_gates_are_feasible_where_they_are_the_pattern():
    h, nu = normal(50, 6), (normal(50, 6, seed=1) > 0).double()
    assert torch.equal(surrogate.is_feasible(h, nu), (h >= 0) == (nu == 1))


def sgn(value: float) -> int:
    """1 if positive, else 0: so that `2 sgn - 1` is in {-1, 1}."""
    return 1 if value > 0 else 0


def sgn_hat(value: float) -> int:
    return 2 * sgn(value) - 1


@pytest.mark.parametrize("k", [0, 2])
@pytest.mark.parametrize("seed", range(6))
def test_the_steepest_direction_is_definition_5_2(seed, k):
    """`hat f` is affine in each gate alone, so its partial derivative is a difference."""
    model, x, sites, h = network(seed)
    found = surrogate.steepest_direction(sites, x, output_k(k))
    nus = [(z >= 0).double() for z in h]
    for row in range(len(x)):
        nu = row_of(nus, row)
        for i, j in neurons(nu):
            on, _ = hat_f(model, x[row], with_gate(nu, i, j, 1))
            off, seen = hat_f(model, x[row], with_gate(nu, i, j, 0))
            slope = ((on - off)[k] / seen[i][j]).item()
            side = sgn_hat(nu[i][j].item() - 0.5)
            if abs(slope) < 1e-12:
                slope = 0.0
            assert found[i][row, j].item() == side * min(sgn_hat(slope) * side, 0)
    values = torch.cat([direction.flatten() for direction in found])
    assert values.unique().tolist() == [-1, 0, 1]


def test_a_neuron_on_its_hyperplane_has_no_steepest_direction():
    model, x, sites, _ = network()
    model[0].bias.data[2] = -(model[0].weight.detach() @ x[0])[2]
    moved = model[0](x)[0, 2].item()
    model[0].bias.data[2] -= moved
    assert model[0](x)[0, 2] == 0
    found = surrogate.steepest_direction(sites, x, output_k(0))
    assert found[0][0, 2] == 0
    assert (
        surrogate.gate_gradient(
            sites, x, [torch.ones_like(direction) for direction in found], output_k(0)
        )[0][0, 2]
        == 0
    )


def feasible_etas(h: list[Tensor], low: float, high: float) -> list[Tensor]:
    """On the side of the pattern, between `low` and `high` away from 1/2."""
    etas = []
    for i, z in enumerate(h):
        away = low + (high - low) * uniform(*z.shape, seed=i)
        etas.append(0.5 + torch.where(z > 0, away, -away))
    return etas


def products(seed: int, alpha: float) -> tuple[Tensor, Tensor]:
    """Of the surrogate's and the steepest direction, `(B, neurons)`, and slopes in `hat f`."""
    _, x, sites, h = network(seed, (4, 12, 11, 10, 1), rows=16)
    etas = feasible_etas(h, 0.008, 0.014)
    assert all(surrogate.is_feasible(z, eta).all() for z, eta in zip(h, etas, strict=True))
    ours = surrogate.surrogate_direction(sites, x, etas, alpha, output_k(0))
    steepest = surrogate.steepest_direction(sites, x, output_k(0))
    nus = [(z > 0).double() for z in h]
    slopes = surrogate.gate_gradient(sites, x, nus, output_k(0))
    return sites.join(ours) * sites.join(steepest), sites.join(slopes)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seeds)
def test_proposition_5_4_the_gate_gradient_follows_the_steepest_direction(seed):
    """With alpha = 2000 these gates are within 1e-7 of 0 or 1, and no derivative is zero."""
    product, slopes = products(seed, alpha=2000.0)
    assert (product.sum(1) >= 0).all()
    assert (product.sum(1) > 0).any()
    clear = slopes.abs() > 1e-3
    assert (product[clear] >= 0).all()
    assert (product[clear] > 0).any()


def test_proposition_5_4_needs_sharp_sigmoids():
    assert any((products(seed, alpha=1.0)[0].sum(1) < 0).any() for seed in range(30))


def plus(value: float) -> float:
    return max(value, 0.0)


def penalty_by_hand(h: Tensor, eta: Tensor, p_norm: Tensor, reduce) -> list[float]:
    """`eq::constraint_loss`, with `reduce` in the place of each of its two sums."""
    result = []
    for row in torch.stack([h, eta, p_norm], -1).flatten(1, -2):
        triples = row.tolist()
        off = [plus(h / p * plus(1 / 2 - eta)) for h, eta, p in triples]
        on = [plus(-h / p * plus(eta - 1 / 2)) for h, eta, p in triples]
        result.append(reduce(off) + reduce(on))
    return result


def one_site(seed: int = 0, shape: tuple[int, ...] = (4, 3, 5)) -> tuple[Tensor, Tensor, Tensor]:
    """Pre-activations, gates and norms, with some gates at 1/2 and some `h` at 0."""
    h, eta = normal(*shape, seed=seed), uniform(*shape, seed=seed + 1)
    h[uniform(*shape, seed=seed + 2) < 0.1] = 0
    eta[uniform(*shape, seed=seed + 3) < 0.1] = 0.5
    return h, eta, 0.1 + uniform(*shape, seed=seed + 4)


@both_reductions
@pytest.mark.parametrize("shape", [(4, 7), (3, 2, 3, 4), (20, 1)])
def test_the_penalty_is_the_papers_two_terms(reduction, shape):
    h, eta, p_norm = one_site(shape=shape)
    expected = penalty_by_hand(h, eta, p_norm, sum if reduction == "sum" else max)
    assert max(expected) > 0
    assert surrogate.penalty(h, eta, p_norm, reduction).tolist() == pytest.approx(expected)
    terms = surrogate.penalty_terms(h, eta, p_norm, reduction)
    assert terms.value.tolist() == pytest.approx(expected)


def test_the_sum_is_the_default():
    tensors = one_site()
    assert torch.equal(surrogate.penalty(*tensors), surrogate.penalty(*tensors, "sum"))
    for field in ("value", "on_pre_activations", "on_gates"):
        default, named = surrogate.penalty_terms(*tensors), surrogate.penalty_terms(*tensors, "sum")
        assert torch.equal(getattr(default, field), getattr(named, field))


@both_reductions
def test_feasible_gates_cost_nothing(reduction):
    h, _, p_norm = one_site()
    (eta,) = feasible_etas([h], 0.01, 0.5)
    terms = surrogate.penalty_terms(h, eta, p_norm, reduction)
    assert surrogate.penalty(h, eta, p_norm, reduction).tolist() == [0, 0, 0, 0]
    assert not torch.cat([terms.on_pre_activations, terms.on_gates]).any()
    assert not terms.value.any()


@both_reductions
def test_the_cost_is_the_disagreement_times_the_distance(reduction):
    """One neuron, 3 / 2 away from its hyperplane, whose gate is off by 0.4."""
    h, eta, p_norm = (torch.full((1, 1), v, dtype=torch.float64) for v in (3.0, 0.1, 2.0))
    terms = surrogate.penalty_terms(h, eta, p_norm, reduction)
    assert terms.value.tolist() == [pytest.approx(1.5 * 0.4)]
    assert terms.on_pre_activations.tolist() == [[pytest.approx(0.4 / 2)]]
    assert terms.on_gates.tolist() == [[pytest.approx(-1.5)]]


@both_reductions
@few
@given(seed=seeds)
def test_derivatives_of_the_penalty_are_those_of_autograd(reduction, seed):
    h, eta, p_norm = one_site(seed)
    leaves = [h.clone().requires_grad_(), eta.clone().requires_grad_()]
    value = surrogate.penalty(*leaves, p_norm, reduction)
    on_h, on_eta = torch.autograd.grad(value.sum(), leaves)
    terms = surrogate.penalty_terms(h, eta, p_norm, reduction)
    assert on_h.any()
    torch.testing.assert_close(terms.value, value.detach())
    torch.testing.assert_close(terms.on_pre_activations, on_h)
    torch.testing.assert_close(terms.on_gates, on_eta)


@both_reductions
def test_derivatives_of_the_penalty_are_finite_differences(reduction):
    h, eta, p_norm = one_site(shape=(3, 6))
    terms = surrogate.penalty_terms(h, eta, p_norm, reduction)
    step = 1e-7
    for j in range(6):
        nudge = torch.zeros_like(h)
        nudge[:, j] = step
        has_slope = (h[:, j] != 0) & (eta[:, j] != 0.5)
        for nudged, derivative in (
            ((h + nudge, eta), terms.on_pre_activations),
            ((h, eta + nudge), terms.on_gates),
        ):
            change = surrogate.penalty(*nudged, p_norm, reduction) - terms.value
            torch.testing.assert_close(
                (change / step)[has_slope], derivative[:, j][has_slope], rtol=1e-5, atol=1e-6
            )


def test_neurons_that_cost_the_same_count_once():
    """Both are the worst: as with blank parts of an image, whose pre-activations are equal."""
    h = torch.tensor([[1.0, 1.0, 0.5, -2.0, -2.0]], dtype=torch.float64)
    eta = torch.tensor([[0.2, 0.2, 0.2, 0.9, 0.9]], dtype=torch.float64)
    p_norm = torch.ones_like(h)
    terms = surrogate.penalty_terms(h, eta, p_norm, "max")
    expected = penalty_by_hand(h, eta, p_norm, max)
    assert surrogate.penalty(h, eta, p_norm, "max").tolist() == pytest.approx(expected)
    assert terms.value.tolist() == pytest.approx(expected)
    assert (h * terms.on_pre_activations).sum(1).tolist() == pytest.approx(expected)


@few
@given(seed=seeds)
def test_the_worst_neurons_of_each_site_are_those_that_a_loop_finds(seed):
    sizes, h, pull = [6, 1, 8], normal(3, 15, seed=seed), normal(3, 15, seed=seed + 1)
    at, cost = surrogate.worst(h, pull, sizes)
    assert at.shape == cost.shape == (3, 2, 3)
    for row in range(3):
        first = 0
        for i, size in enumerate(sizes):
            for side, sign in enumerate((1, -1)):
                costs = [
                    (h[row, j] * pull[row, j]).item() if sign * pull[row, j] > 0 else 0.0
                    for j in range(first, first + size)
                ]
                assert cost[row, side, i].item() == max(0.0, *costs)
                if max(costs) > 0:
                    assert costs[int(at[row, side, i])] == max(costs)
            first += size


def test_the_lagrangian_is_the_papers():
    score, beta = normal(4), uniform(4, seed=1)
    penalties = list(uniform(3, 4, seed=2))
    expected = [
        -score[b].item() + beta[b].item() * sum(penalty[b].item() for penalty in penalties)
        for b in range(4)
    ]
    assert surrogate.lagrangian(score, penalties, beta).tolist() == pytest.approx(expected)


def random_etas(h: list[Tensor]) -> list[Tensor]:
    return [uniform(*z.shape, seed=10 + i) for i, z in enumerate(h)]


def whole_lagrangian(
    sites: Sites, x: Tensor, etas: list[Tensor], alpha: float, beta: Tensor, p_norms: list[Tensor]
) -> Tensor:
    """`eq::objective` from the gated and the plain network, with both terms of each penalty."""
    output, _ = sites.gated(x, [1 / (1 + torch.exp(-alpha * (eta - 0.5))) for eta in etas])
    _, seen = sites.pre_activations(x)
    total = torch.zeros(len(x), dtype=x.dtype)
    for h, eta, p_norm in zip(seen, etas, p_norms, strict=True):
        off = torch.relu(h / p_norm * torch.relu(0.5 - eta))
        on = torch.relu(-h / p_norm * torch.relu(eta - 0.5))
        total = total + (off + on).flatten(1).sum(1)
    return -smooth(output) + beta * total


def conv_net() -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers = [nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Conv2d(3, 4, 2), nn.ReLU()]
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(16, 3)).double().eval()


def problem(kind: str):
    """Sites, inputs, gates, norms and a weight for each row."""
    if kind == "conv":
        model, x = conv_net(), normal(3, 1, 5, 5)
        sites = discover(model, x)
        h = [z.detach() for z in sites.pre_activations(x)[1]]
    else:
        _, x, sites, h = network(rows=3)
    p_norms = [0.5 + uniform(*z.shape, seed=20 + i) for i, z in enumerate(h)]
    beta = torch.tensor([0.0, 0.7, 30.0], dtype=torch.float64)
    return sites, x, random_etas(h), p_norms, beta


@pytest.mark.parametrize("alpha", [3.0, 40.0])
@pytest.mark.parametrize("kind", ["fully connected", "conv"])
def test_the_input_gradient_is_that_of_the_lagrangian(kind, alpha):
    sites, x, etas, p_norms, beta = problem(kind)
    found = surrogate.input_gradient(sites, x, etas, alpha, beta, p_norms, smooth)
    leaf = x.clone().requires_grad_()
    total = whole_lagrangian(sites, leaf, etas, alpha, beta, p_norms).sum()
    (expected,) = torch.autograd.grad(total, leaf)
    assert found.shape == x.shape
    torch.testing.assert_close(found, expected)
    without_penalty = surrogate.input_gradient(
        sites, x, etas, alpha, torch.zeros_like(beta), p_norms, smooth
    )
    torch.testing.assert_close(found[0], without_penalty[0])
    assert (found[1:] - without_penalty[1:]).abs().max() > 1e-3


@pytest.mark.parametrize("kind", ["fully connected", "conv"])
def test_the_input_gradient_is_a_finite_difference(kind):
    sites, x, etas, p_norms, beta = problem(kind)
    found = surrogate.input_gradient(sites, x, etas, 4.0, beta, p_norms, smooth)
    direction, step = normal(*x.shape, seed=5), 1e-6
    with torch.no_grad():
        ahead, behind = (
            whole_lagrangian(sites, x + sign * step * direction, etas, 4.0, beta, p_norms)
            for sign in (1, -1)
        )
    slope = (found * direction).flatten(1).sum(1)
    torch.testing.assert_close(slope, (ahead - behind) / (2 * step), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_the_gate_gradient_is_a_difference_for_each_unit_of_pre_activation(seed):
    model, x, sites, h = network(seed, rows=2)
    gates = random_etas(h)
    found = surrogate.gate_gradient(sites, x, gates, output_k(1))
    for row in range(2):
        own = row_of(gates, row)
        _, seen = hat_f(model, x[row], own)
        for i, j in neurons(own):
            on, _ = hat_f(model, x[row], with_gate(own, i, j, 1))
            off, _ = hat_f(model, x[row], with_gate(own, i, j, 0))
            expected = ((on - off)[1] / seen[i][j]).item()
            assert found[i][row, j].item() == pytest.approx(expected, rel=1e-8, abs=1e-10)


def test_the_gate_gradient_is_that_of_autograd():
    sites, x, gates, *_ = problem("conv")
    leaves = [gate.clone().requires_grad_() for gate in gates]
    output, seen = sites.gated(x, leaves)
    expected = torch.autograd.grad(smooth(output).sum(), leaves)
    for slope, h, gradient in zip(
        surrogate.gate_gradient(sites, x, gates, smooth), seen, expected, strict=True
    ):
        assert gradient.abs().max() > 1e-3
        torch.testing.assert_close(slope * h, gradient)


@pytest.mark.parametrize("alpha", [3.0, 40.0])
def test_the_surrogate_direction_is_the_gradient_on_eta_for_each_unit_of_pre_activation(alpha):
    sites, x, etas, *_ = problem("fully connected")
    leaves = [eta.clone().requires_grad_() for eta in etas]
    gates = [1 / (1 + torch.exp(-alpha * (leaf - 0.5))) for leaf in leaves]
    output, seen = sites.gated(x, gates)
    expected = torch.autograd.grad(smooth(output).sum(), leaves)
    for direction, h, gradient in zip(
        surrogate.surrogate_direction(sites, x, etas, alpha, smooth), seen, expected, strict=True
    ):
        assert gradient.abs().max() > 1e-4
        torch.testing.assert_close(direction * h, gradient)


def test_the_tensors_of_the_caller_are_left_alone():
    sites, x, etas, p_norms, beta = problem("fully connected")
    kept = [tensor.clone() for tensor in (x, beta, *etas, *p_norms)]
    surrogate.input_gradient(sites, x, etas, 5.0, beta, p_norms, smooth)
    surrogate.surrogate_direction(sites, x, etas, 5.0, smooth)
    surrogate.steepest_direction(sites, x, output_k(0))
    for reduction in ("sum", "max"):
        surrogate.penalty_terms(etas[0] - 0.5, etas[0], p_norms[0], reduction)
    now = [x, beta, *etas, *p_norms]
    assert all(torch.equal(a, b) for a, b in zip(kept, now, strict=True))
    assert not any(tensor.requires_grad for tensor in now)
