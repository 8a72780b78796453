"""The unit of the inputs does not matter to activation descent."""

import pytest
import torch
from torch import Tensor, nn

import facetwalk as fw
from facetwalk.objectives import CrossEntropy
from facetwalk.solvers import ActivationDescent, Sign
from facetwalk.zoo import random_network


def scaled_inputs(net: nn.Sequential, factor: Tensor) -> nn.Sequential:
    """The network that gives on `factor * x` what `net` gives on `x`."""
    copy = nn.Sequential(nn.Linear(*net[0].weight.shape[::-1]), *list(net)[1:]).double().eval()
    copy[0].weight.data = net[0].weight.detach() / factor
    copy[0].bias.data = net[0].bias.detach()
    return copy


def in_units(kind: str, factor: Tensor, count: int) -> fw.Space:
    generator = torch.Generator().manual_seed(3)
    centers = torch.rand(count, 6, generator=generator, dtype=torch.float64) - 0.5
    eps = torch.linspace(0.5, 1, count, dtype=torch.float64)
    if kind == "box":
        return fw.Box((centers - 1) * factor, (centers + 0.7) * factor, shape=(6,))
    assert len(set(factor.tolist())) == 1
    ball = {"linf": fw.LinfBall, "l2": fw.L2Ball, "l1": fw.L1Ball}[kind]
    return ball(centers * factor, eps * factor[0])


EACH_ITS_OWN = torch.tensor([2.0**-10, 1.0, 2.0**10, 4.0, 2.0**-3, 2.0**20]).double()


@pytest.mark.parametrize("normals_method", ["probed", "exact"])
@pytest.mark.parametrize(
    ("kind", "factor"),
    [
        ("box", torch.full((6,), 1000.0).double()),
        ("box", torch.full((6,), 1 / 255).double()),
        ("box", EACH_ITS_OWN),
        ("linf", torch.full((6,), 1000.0).double()),
        ("l2", torch.full((6,), 1000.0).double()),
        ("l1", torch.full((6,), 1e-3).double()),
    ],
    ids=["box x 1000", "box / 255", "box, anisotropic", "linf", "l2", "l1"],
)
def test_the_unit_of_the_inputs_does_not_matter(kind, factor, normals_method):
    net = random_network((6, 20, 15, 4), 1).double()
    objective = CrossEntropy(torch.arange(5) % 4)
    solver = ActivationDescent(steps=40, normals=normals_method, width=1.0, annealing=0.8)
    results = []
    for unit in (torch.ones(6, dtype=torch.float64), factor):
        problem = fw.Problem(scaled_inputs(net, unit), objective, in_units(kind, unit, 5))
        results.append(fw.maximize(problem, solver=solver, starts=3, seed=2))
    torch.testing.assert_close(results[1].value, results[0].value, rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(results[1].x / factor, results[0].x, rtol=1e-6, atol=1e-9)
    plain = fw.maximize(
        fw.Problem(net, objective, in_units(kind, torch.ones(6).double(), 5)),
        solver=Sign(steps=40),
        starts=3,
        seed=2,
    )
    assert not torch.allclose(plain.x, results[0].x)
