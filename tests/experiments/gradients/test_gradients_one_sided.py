"""Missed gradients against a loop over neurons that differentiates by differences."""

import math

import pytest
import torch
from plain_network import PlainNetwork

import facetwalk as fw
from facetwalk.experiments.gradients.one_sided import Sides, all_normals, look_at_sides
from facetwalk.experiments.gradients.walks import Method, methods
from facetwalk.sites import discover, pattern_of
from facetwalk.surrogate import gate_gradient
from facetwalk.zoo import random_network

SIZES = (2, 5, 4, 1)
SMALL = 1e-6
BOX = fw.Box(-1, 1, shape=(2,)).to(torch.device("cpu"), torch.float64)


def dot(a, b):
    return sum(p * q for p, q in zip(a, b, strict=True))


def moved(x, gradient, method):
    """The first step of a method by hand, clipped to the box."""
    if method.name == "GD":
        length = math.sqrt(dot(gradient, gradient)) or 1.0
        step = [0.5 * g / length for g in gradient]
    else:
        step = [0.5 * ((g > 0) - (g < 0)) for g in gradient]
    return [min(max(a + s, -1.0), 1.0) - a for a, s in zip(x, step, strict=True)], step


def by_hand(plain: PlainNetwork, x: list[float], method: Method) -> tuple[int, int, bool | None]:
    """Near and missed neurons by the definition; every derivative is a difference quotient."""
    value, h = plain.run(x)
    live = plain.pattern(x)

    def along(k: int) -> tuple[float, list[float]]:
        there = [a + SMALL * (i == k) for i, a in enumerate(x)]
        output, seen = plain.run(there, live)
        return (output - value) / SMALL, [(a - b) / SMALL for a, b in zip(seen, h, strict=True)]

    columns = [along(k) for k in range(len(x))]
    g = [column[0] for column in columns]
    minus, step = moved(x, g, method)
    near = missed = 0
    best = (-math.inf, minus)
    for j in range(plain.hidden):
        normal = [column[1][j] for column in columns]
        length = math.sqrt(dot(normal, normal))
        if h[j] > 0 or length < 1e-9 or -h[j] > math.sqrt(dot(step, step)) * length:
            continue
        near += 1
        slope = (plain.run(x, live, (j, SMALL))[0] - value) / SMALL
        plus, _ = moved(x, [a + slope * b for a, b in zip(g, normal, strict=True)], method)
        gain = dot(g, plus) + slope * max(h[j] + dot(normal, plus), 0.0)
        if h[j] + dot(normal, minus) <= 0 < h[j] + dot(normal, plus) and gain > dot(g, minus):
            missed += 1
            best = max(best, (gain, plus))
    if not missed:
        return near, missed, None
    ends = [[a + d for a, d in zip(x, move, strict=True)] for move in (minus, best[1])]
    taken, other = (plain.run(end)[0] for end in ends)
    return near, missed, other > taken


def test_missed_gradients_are_those_of_the_definition():
    seen = []
    generator = torch.Generator().manual_seed(0)
    for seed in range(12):
        network = random_network(SIZES, seed).double()
        plain = PlainNetwork(network)
        problem = fw.Problem(network, fw.objectives.Output(0), BOX)
        for x in 2 * torch.rand(5, 1, 2, dtype=torch.float64, generator=generator) - 1:
            for method in methods(10):
                found = look_at_sides(problem, x, lambda g, m=method: m.step(BOX, g, 0))
                assert found == Sides(*by_hand(plain, x[0].tolist(), method))
                seen.append(found)
    assert sum(each.missed for each in seen) >= 5
    assert {each.holds for each in seen} == {True, False, None}


def test_the_gradient_of_the_other_side_is_the_one_beyond_the_hyperplane():
    network = random_network(SIZES, 1).double()
    objective, checked = fw.objectives.Output(0), 0
    generator = torch.Generator().manual_seed(1)
    for x in 2 * torch.rand(30, 1, 2, dtype=torch.float64, generator=generator) - 1:
        sites = discover(network, x)
        seen = sites.pre_activations(x)[1]
        gates = pattern_of(sites, seen).gates(x.dtype)
        h = sites.join(seen)[0].detach()
        normals = all_normals(sites, x, gates)
        slopes = sites.join(gate_gradient(sites, x, gates, objective))[0]
        distance = h.abs() / normals.norm(dim=1)
        j = int(distance.argmin())
        if h[j] > 0:
            continue
        beyond = x + (distance[j] + 1e-9) * normals[j] / normals[j].norm()
        here, there = (
            torch.autograd.functional.jacobian(lambda y: network(y).sum(), point)[0]
            for point in (x, beyond)
        )
        torch.testing.assert_close(there, here + slopes[j] * normals[j])
        checked += 1
    assert checked > 5


@pytest.mark.parametrize("slope", [0.5, 3.0])
def test_a_valley_is_left_on_the_steeper_side_only_if_that_is_the_other_one(slope):
    net = torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))
    for layer, rows in ((net[0], [[-1.0], [1.0]]), (net[2], [[1.0, slope]])):
        layer.weight.data, layer.bias.data = torch.tensor(rows), torch.zeros(len(rows))
    line = fw.Box(-1, 1, shape=(1,))
    problem = fw.Problem(net.double().eval(), fw.objectives.Output(0), line)
    x = torch.tensor([[-1e-9]], dtype=torch.float64)
    found = look_at_sides(problem, x, lambda gradient: 0.1 * gradient.sign())
    # On the dead side the slope is 1 to the left; the other neuron adds `slope` to -1.
    assert found == (Sides(1, 1, True) if slope > 2 else Sides(1, 0, None))
