"""Local certificates: points that are the best near by, and points that are not."""

import pytest
import torch
from small_networks import network

import facetwalk as fw
from facetwalk import exact
from facetwalk.objectives import Output


def problem(seed=0, inputs=5):
    net = network(inputs, 20, 10, 1, seed=seed)
    return fw.Problem(net, Output(0), fw.Box(-1, 1, shape=(inputs,)))


@pytest.mark.parametrize("seed", range(3))
def test_a_maximum_holds_and_a_random_point_does_not(seed):
    task = problem(seed)
    result = fw.maximize(task, evaluations=10_000)
    held = exact.local_certificate(task, result.x[0], 0.05, tolerance=1e-3)
    assert held.holds
    assert held.better is None
    inside = torch.full((5,), 0.3)
    refuted = exact.local_certificate(task, inside, 0.05)
    assert not refuted.holds
    assert refuted.better is not None
    assert (refuted.better - inside).abs().max() <= 0.05 + 1e-6
    value = task.model(refuted.better[None]).item()
    assert value > task.model(inside.double()[None]).item() + 1e-4


def test_a_flat_top_holds():
    net = network(2, 3, 1)
    with torch.no_grad():
        net[2].weight.fill_(-1)
        net[0].bias.fill_(-5)
    flat = fw.Problem(net, Output(0), fw.Box(-1, 1, shape=(2,)))
    assert exact.local_certificate(flat, torch.zeros(2), 0.5).holds


def test_a_point_holds_where_another_is_better_by_less_than_the_tolerance():
    task, x = problem(), torch.full((5,), 0.3)
    near = fw.Box(x - 0.05, x + 0.05)
    best = exact.maximize(task.model, near, Output(0), gap=1e-6).value
    better_by = best - task.model(x.double()[None]).item()
    assert better_by > 0.01
    for share, holds in ((0.8, True), (1.2, False)):
        found = exact.local_certificate(task, x, 0.05, tolerance=better_by / share)
        assert found.holds is holds
        assert (found.better is None) is holds


def test_a_result_is_certified_where_its_precision_is_coarser_than_the_ball():
    task = fw.Problem(network(3, 4, 1), Output(0), fw.LinfBall(torch.full((1, 3), 100.0), 1e-4))
    result = fw.maximize(task, evaluations=200)
    assert exact.local_certificate(task, result.x[0], 0.1, tolerance=1e-3).holds


@pytest.mark.parametrize(
    ("x", "radius", "match"),
    [
        (torch.zeros(4), 0.1, "x has shape"),
        (torch.full((5,), 3.0), 0.1, "outside the space"),
        (torch.zeros(5), 0.0, "radius must be positive"),
        (torch.zeros(5), "0.1", "radius must be a number; it is '0.1'"),
        (
            [0.0] * 5,
            0.1,
            r"x must be a Result or a tensor of shape \(5,\), such as a row of result.x; it is a l",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(x, radius, match):
    with pytest.raises(fw.InputError, match=match):
        exact.local_certificate(problem(), x, radius)


def test_a_result_may_be_passed_as_it_is():
    task = problem()
    result = fw.maximize(task, evaluations=2000)
    by_row, by_result = (exact.local_certificate(task, x, 0.05) for x in (result.x[0], result))
    assert by_result.holds is by_row.holds
    assert by_result.proof.value == by_row.proof.value


def test_of_the_result_of_several_problems_one_row_must_be_picked():
    several = fw.Problem(problem().model, Output(0), fw.Box(-torch.ones(3, 5), 1.0, shape=(5,)))
    result = fw.maximize(several, evaluations=100)
    with pytest.raises(fw.InputError, match=r"the result has 3 points: pass one of them, result.x"):
        exact.local_certificate(problem(), result, 0.05)


@pytest.mark.parametrize("factor", [1.0, 1e6])
def test_what_counts_as_better_grows_with_the_values(factor):
    """f(x) = factor * (1 + x): a step of 0.9e-4 is too small to count, and one of 1.2e-4 is not."""
    net = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.ReLU()).double().eval()
    for parameter in net.parameters():
        parameter.data.fill_(factor)
    rising = fw.Problem(net, Output(0), fw.Box(-1, 1, shape=(1,)))
    x = torch.zeros(1, dtype=torch.float64)
    assert exact.local_certificate(rising, x, 0.9e-4).holds
    assert not exact.local_certificate(rising, x, 1.2e-4).holds


@pytest.mark.parametrize("seed", range(3))
def test_no_point_within_the_radius_is_reported_below_the_one_in_question(seed):
    task = problem(seed)
    x = fw.maximize(task, evaluations=2000).x
    value = task.model(x.double()).item()
    for time_limit in (1e-9, 60):
        proof = exact.local_certificate(task, x[0], 0.01, time_limit=time_limit).proof
        assert value <= proof.value <= proof.bound


def test_a_certificate_may_have_no_time_limit():
    x = torch.full((5,), 0.3)
    limits = (60, None)
    first, second = (exact.local_certificate(problem(), x, 0.05, time_limit=t) for t in limits)
    assert first.holds == second.holds is False


def test_the_objective_of_a_certificate_must_fit_its_network():
    task = fw.Problem(network(5, 6, 3), fw.objectives.Margin(torch.tensor([3])), problem().space)
    with pytest.raises(fw.InputError, match="labels run from 3 to 3, and the model has classes 0"):
        exact.local_certificate(task, torch.zeros(5), 0.1)
