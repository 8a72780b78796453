"""ADR-GD's penalty and what it adds to gradients, against loops over neurons."""

import pytest
import torch
from torch import Tensor

from facetwalk.sites import Sites, discover
from facetwalk.solvers.adr_gd import _firsts
from facetwalk.solvers.adr_gd_penalty import EveryNeuron, Penalty, WorstNeurons
from facetwalk.zoo import random_network

ROWS, SIZES = 4, (7, 1, 9)
both = pytest.mark.parametrize("reduction", ["sum", "max"])


def sites() -> Sites:
    return discover(random_network((3, *SIZES, 2), seed=0).double(), torch.zeros(1, 3).double())


def random(low: float, high: float, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    uniform = torch.rand(ROWS, sum(SIZES), generator=generator, dtype=torch.float64)
    return low + (high - low) * uniform


def point(seed: int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Pre-activations, gates below 1/2 by so much, one over norms, and a weight for each row."""
    h, lean = random(-1, 1, seed), random(-0.5, 0.5, seed + 1)
    h[:, 3] = 0
    lean[:, 4] = 0
    return h, lean, 1 / random(0.1, 2, seed + 2), torch.tensor([0.0, 0.7, 2.0, 30.0]).double()


def penalty(reduction: str, h: Tensor, lean: Tensor, inverse: Tensor, beta: Tensor) -> Penalty:
    tensors = [tensor.clone() for tensor in (h, lean, inverse, beta)]
    if reduction == "sum":
        return EveryNeuron(sites(), *tensors)
    return WorstNeurons(sites(), _firsts(sites(), h), *tensors)


def counted(costs: list[float], lean: list[float], reduction: str) -> list[int]:
    """The neurons of one site that count: those with a cost, or the worst on each side."""
    wrong = [j for j, cost in enumerate(costs) if cost > 0]
    if reduction == "sum":
        return wrong
    sides = [[j for j in wrong if lean[j] > 0], [j for j in wrong if lean[j] < 0]]
    return [max(side, key=lambda j: costs[j]) for side in sides if side]


def by_hand(h: Tensor, lean: Tensor, inverse: Tensor, beta: Tensor, reduction: str):
    """The penalty, and beta times its derivatives on `h` and on `eta`."""
    value, on_h, on_eta = [0.0] * ROWS, torch.zeros_like(h), torch.zeros_like(h)
    for row in range(ROWS):
        first = 0
        for size in SIZES:
            some = slice(first, first + size)
            z, v, p = (each[row, some].tolist() for each in (h, lean, inverse))
            costs = [a * b * c for a, b, c in zip(z, v, p, strict=True)]
            for j in counted(costs, v, reduction):
                value[row] += costs[j]
                on_h[row, first + j] = beta[row] * v[j] * p[j]
                on_eta[row, first + j] = -beta[row] * z[j] * p[j]
            first += size
    return value, on_h, on_eta


@both
@pytest.mark.parametrize("seed", range(5))
def test_the_penalty_and_its_derivatives_are_those_of_the_neurons_that_count(reduction, seed):
    tensors = point(seed)
    value, on_h, on_eta = by_hand(*tensors, reduction)
    found = penalty(reduction, *tensors)
    assert found.value.tolist() == pytest.approx(value)
    assert min(value) > 0
    before = random(-1, 1, 9)
    pushed = [part.clone() for part in before.split(SIZES, 1)]
    for site, part in enumerate(pushed):
        found.push(site, part)
    torch.testing.assert_close(torch.cat(pushed, 1), before + on_h)
    pulled = before.clone()
    found.pull(pulled, 0.25)
    torch.testing.assert_close(pulled, before + on_eta / 4)


@both
def test_gates_that_agree_add_nothing(reduction):
    h, lean, inverse, beta = point()
    found = penalty(reduction, h, -lean.abs() * h.sign(), inverse, beta)
    gradient = torch.zeros_like(h)
    found.pull(gradient)
    for site, part in enumerate(gradient.split(SIZES, 1)):
        found.push(site, part)
    assert not gradient.any()
    assert found.value.tolist() == [0] * ROWS


@pytest.mark.parametrize("side", [-1, 1])
def test_all_neurons_wrong_on_one_side_leave_nothing_on_the_other(side):
    _, lean, inverse, beta = point()
    h, lean = side * random(0.1, 1, 5), side * (lean.abs() + 0.1)
    value, on_h, _ = by_hand(h, lean, inverse, beta, "max")
    found = penalty("max", h, lean, inverse, beta)
    gradient = torch.zeros_like(h)
    for site, part in enumerate(gradient.split(SIZES, 1)):
        found.push(site, part)
    assert found.value.tolist() == pytest.approx(value)
    torch.testing.assert_close(gradient, on_h)


def test_neurons_that_cost_the_same_count_once():
    """As with blank parts of an image, whose pre-activations are equal."""
    h, lean = torch.ones(ROWS, sum(SIZES)).double(), torch.full((ROWS, sum(SIZES)), 0.5).double()
    beta = torch.ones(ROWS).double()
    found = penalty("max", h, lean, torch.ones_like(h), beta)
    gradient = torch.zeros_like(h)
    found.pull(gradient)
    assert found.value.tolist() == [0.5 * len(SIZES)] * ROWS
    assert (gradient != 0).sum(1).tolist() == [len(SIZES)] * ROWS
