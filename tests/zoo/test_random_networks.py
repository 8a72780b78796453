from itertools import pairwise

import pytest
import torch

import facetwalk as fw
from facetwalk.sites import discover
from facetwalk.types import InputError
from facetwalk.zoo import MODEL_A, MODEL_B, MODEL_C, notebook_network, random_network


def all_parameters(sizes: tuple[int, ...], seed: int) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in random_network(sizes, seed).parameters()])


@pytest.mark.parametrize("sizes", [MODEL_A, MODEL_B, MODEL_C])
def test_parameters_are_uniform_between_minus_one_and_one(sizes):
    parameters = all_parameters(sizes, seed=1)
    assert len(parameters) == sum((a + 1) * b for a, b in pairwise(sizes))
    assert parameters.abs().max() <= 1
    deviations = 5 / len(parameters) ** 0.5
    assert abs(parameters.mean()) < deviations
    assert abs(parameters.square().mean() - 1 / 3) < deviations
    assert abs((parameters > 0.5).float().mean() - 1 / 4) < deviations


def test_it_computes_alternating_linear_maps_and_relus():
    net = random_network((3, 5, 4, 2), seed=0)
    w1, b1, w2, b2, w3, b3 = net.parameters()
    x = torch.randn(7, 3, generator=torch.Generator().manual_seed(0))
    h = (x @ w1.T + b1).clamp(min=0)
    h = (h @ w2.T + b2).clamp(min=0)
    torch.testing.assert_close(net(x), h @ w3.T + b3)


def test_the_seed_alone_decides_and_the_global_generator_is_untouched():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = all_parameters(MODEL_A, seed=2)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(6)
    assert torch.equal(all_parameters(MODEL_A, seed=2), first)
    assert not torch.equal(all_parameters(MODEL_A, seed=3), first)


def test_it_is_in_eval_mode_and_its_sites_are_the_hidden_layers():
    net = random_network(MODEL_A, seed=0)
    assert not any(part.training for part in net.modules())
    assert [site.shape for site in discover(net, torch.zeros(1, 10))] == [(64,), (64,)]


def test_gradient_ascent_ends_where_it_ends_in_the_notebook_of_the_authors():
    values = []
    problem = fw.Problem(notebook_network(), fw.objectives.Output(0), fw.Box(-1, 1, shape=(10,)))
    fw.maximize(
        problem,
        solver=fw.solvers.Gd(steps=3000, step_size=0.5, normalization="l2", decay="constant"),
        x0="center",
        callback=lambda step: values.append(step.value.item()),
    )
    assert values[-1] == pytest.approx(19.9599, abs=5e-5)


@pytest.mark.parametrize("sizes", [(), (3,), (3, 0, 1), (3, -2), (3, 2.5)])
def test_sizes_that_make_no_network_are_refused(sizes):
    with pytest.raises(InputError, match="positive integers"):
        random_network(sizes, seed=0)


@pytest.mark.parametrize("width", [10**8, 10**30])
def test_a_network_that_no_memory_holds_is_refused(width):
    with pytest.raises(InputError, match=f"a layer of {width} by {width} .* smaller sizes") as said:
        random_network((width, width, 1), seed=0)
    assert "\n" not in str(said.value)
