"""The default: it keeps to its budget, for problems of any number and size."""

from dataclasses import replace

import pytest
import torch
from tiny_networks import BOX, tiny
from torch import nn

import facetwalk as fw
from facetwalk.objectives import Margin, Output
from facetwalk.sites import discover
from facetwalk.solvers import ActivationDescent, Auto, Recombination, Sign
from facetwalk.zoo import digits, digits_net, random_network


@pytest.mark.parametrize("relus", [True, False], ids=["ReLUs", "no ReLUs"])
@pytest.mark.parametrize("budget", [1, 2, 50, 199, 200, 201, 333, 1500, 5000])
def test_counted_evaluations_are_those_of_the_plan(budget, relus):
    problem = fw.Problem(tiny(relus), Output(0), BOX)
    result = fw.maximize(problem, evaluations=budget)
    (spent,) = result.evaluations.backward.tolist()
    assert 0.9 * budget <= spent <= budget
    assert result.solver == Auto(evaluations=budget).plan(relus)
    assert result.solver.evaluations == spent


@pytest.mark.parametrize("budget", [1, 50, 199, 333, 999, 1000, 5000])
def test_a_threshold_out_of_reach_costs_the_whole_budget(budget):
    problem = fw.Problem(tiny(), Output(0), BOX)
    result = fw.maximize(problem, evaluations=budget, stop_at=1e9)
    (spent,) = result.evaluations.backward.tolist()
    assert 0.9 * budget <= spent <= budget
    assert result.solver == Auto(evaluations=budget).plan(to_the_last_digit=False)


@pytest.mark.parametrize("budget", [20, 300, 999, 1000, 20_000])
def test_on_the_way_to_a_threshold_few_steps_in_the_end_push_the_best_points_on(budget):
    plan = Auto(evaluations=budget).plan(to_the_last_digit=False)
    first, last = plan.rounds[0], plan.rounds[-1]
    assert (first.width == 0) == (budget >= 1000)
    assert plan.inner.width > 0
    assert first.momentum == 0
    signs = Auto(evaluations=budget).plan(relus=False, to_the_last_digit=False)
    assert {type(solver) for solver in signs.rounds} == {Sign}
    if budget >= 200:
        assert last == plan.polish
        assert last.momentum > 0
        assert 10 <= last.steps <= plan.steps / 5
    else:
        assert last.momentum == 0


@pytest.mark.parametrize("ball", [fw.LinfBall, fw.L2Ball, fw.L1Ball])
def test_where_coordinates_share_the_room_plans_know_how_wide_the_kernel_should_be(ball):
    space = ball(torch.zeros(1, 3), 1.0)
    problem = fw.Problem(tiny(), Output(0), space)
    to_a_threshold = fw.maximize(problem, evaluations=2000, stop_at=1e9).solver
    assert (to_a_threshold.first.width > 0) == space.shares_room
    assert to_a_threshold.inner.width == ActivationDescent().width
    to_the_last_digit = fw.maximize(problem, evaluations=2000).solver
    assert (to_the_last_digit.inner.width < ActivationDescent().width) == space.shares_room


def test_the_last_round_brings_images_nearer_to_a_threshold():
    """Of 80 test digits; the steps of the last round make the first one longer instead."""
    images, labels = (part[:80] for part in digits("test"))
    space = fw.LinfBall(images, eps=0.2, bounds=(0, 1))
    problem = fw.Problem(digits_net(), Margin(labels), space)
    plan = Auto(evaluations=1000).plan(to_the_last_digit=False)
    more = plan.first.steps + plan.polish.steps
    without = replace(plan, polish=None, first=replace(plan.first, steps=more))
    short, shorter = (
        fw.maximize(problem, solver=each, x0="sample", stop_at=0.5).value.clamp_max(0.5).mean()
        for each in (plan, without)
    )
    assert short > shorter


def test_relus_are_looked_for_once_in_a_call(monkeypatch):
    from facetwalk.solvers import base

    looks = []

    def counted(model, x):
        looks.append(len(x))
        return discover(model, x)

    monkeypatch.setattr(base, "discover", counted)
    box = fw.Box(-torch.ones(9, 3), 1, shape=(3,))
    fw.maximize(fw.Problem(tiny(), Output(0), box), evaluations=200, batch_size=8)
    assert len(looks) == 1


def test_every_start_has_the_whole_budget():
    result = fw.maximize(fw.Problem(tiny(), Output(0), BOX), evaluations=400, starts=3)
    assert 3 * 360 <= result.evaluations.backward.item() <= 3 * 400


def test_both_budgets_hold_together():
    problem = fw.Problem(tiny(), Output(0), BOX)
    result = fw.maximize(problem, evaluations=50, seconds=60.0)
    assert result.evaluations.backward.item() == 50
    late = fw.maximize(problem, evaluations=10**8, seconds=0.3)
    assert late.seconds < 2.5
    assert set(late.status) == {fw.Status.STOPPED}


def test_the_default_is_a_thousand_evaluations():
    problem = fw.Problem(tiny(), Output(0), BOX)
    default, same = fw.maximize(problem), fw.maximize(problem, solver=Auto(evaluations=1000))
    assert default.solver == same.solver
    assert torch.equal(default.x, same.x)
    assert 900 <= default.evaluations.backward.item() <= 1000


def test_a_budget_given_twice_is_the_calls():
    result = fw.maximize(
        fw.Problem(tiny(), Output(0), BOX), solver=Auto(evaluations=900), evaluations=60
    )
    assert result.evaluations.backward.item() == 60


@pytest.mark.parametrize("kind", ["linf", "l2", "l1", "box"])
def test_a_batch_gives_what_single_calls_give(kind):
    net = random_network((4, 8, 7, 3), 0).double()
    generator = torch.Generator().manual_seed(0)
    centers = torch.rand(3, 4, generator=generator, dtype=torch.float64)
    space = {
        "linf": fw.LinfBall(centers, eps=0.3, bounds=(0, 1)),
        "l2": fw.L2Ball(centers, eps=0.3, bounds=(0, 1)),
        "l1": fw.L1Ball(centers, eps=0.3),
        "box": fw.Box(centers - 1, centers + 0.5, shape=(4,)),
    }[kind]
    labels = torch.arange(3)
    together = fw.maximize(fw.Problem(net, Margin(labels), space), evaluations=200, seed=4)
    for b in range(3):
        row = torch.tensor([b])
        alone = fw.Problem(net, Margin(labels[row]), space.select(row))
        result = fw.maximize(alone, evaluations=200, seed=4 + b)
        assert torch.allclose(result.x[0], together.x[b], atol=1e-5)
        assert torch.allclose(result.value[0], together.value[b], atol=1e-5)


class TestSizes:
    @pytest.mark.parametrize("count", [1, 2, 500])
    def test_any_number_of_problems(self, count):
        labels = torch.arange(count) % 3
        centers = torch.rand(count, 4, generator=torch.Generator().manual_seed(0))
        space = fw.LinfBall(centers, eps=0.3, bounds=(0, 1))
        net = random_network((4, 8, 3), 0)
        result = fw.maximize(fw.Problem(net, Margin(labels), space), evaluations=200)
        assert result.x.shape == (count, 4)
        assert space.contains(result.x).all()
        assert (result.value >= result.initial_value).all()
        assert result.evaluations.backward.unique().tolist() == [200]

    @pytest.mark.parametrize("inputs", [1, 3000])
    @pytest.mark.parametrize("kind", ["box", "l2", "l1"])
    def test_any_number_of_inputs(self, inputs, kind):
        """Of `max(w x + b, 0)`, which is live at the start: w's dual norm, plus b.

        In an L1 ball a step goes along the twentieth of the entries that are largest.
        """
        generator = torch.Generator().manual_seed(0)
        net = nn.Sequential(nn.Linear(inputs, 1), nn.ReLU()).eval()
        net[0].weight.data = torch.randn(1, inputs, generator=generator)
        net[0].bias.data.fill_(1.0)
        zero, size = torch.zeros(1, inputs), net[0].weight.detach().abs()[0]
        largest = size.topk(max(1, inputs // 20)).values
        space, best, reached = {
            "box": (fw.Box(-1, 1, shape=(inputs,)), size.sum(), size.sum()),
            "l2": (fw.L2Ball(zero, eps=1.0), size.norm(), size.norm()),
            "l1": (fw.L1Ball(zero, eps=1.0), size.max(), largest.mean()),
        }[kind]
        result = fw.maximize(fw.Problem(net, Output(0), space), evaluations=300)
        assert 0.999 * (reached + 1) <= result.value.item() <= (best + 1) * (1 + 1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solver": Sign(), "evaluations": 100}, "evaluations= is the budget of Auto"),
        ({"solver": Recombination(), "evaluations": 100}, "leave one of them out"),
        ({"evaluations": 0}, "at least 1; it is 0"),
        ({"evaluations": 1e3}, "evaluations must be a whole number"),
        ({"solver": Sign}, "the solver must be one of facetwalk.solvers"),
        ({"seconds": 0}, "seconds must be a positive number; it is 0"),
        ({"seconds": -1.0}, "seconds must be a positive number; it is -1.0"),
        ({"seconds": float("nan")}, "seconds must be a positive number"),
        ({"solver": Sign(), "seconds": -2}, "seconds must be a positive number; it is -2"),
    ],
)
def test_bad_budgets_are_refused(options, message):
    with pytest.raises(fw.InputError, match=message):
        fw.maximize(fw.Problem(tiny(), Output(0), BOX), **options)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"evaluations": 0}, "at least 1"), ({"seconds": 0.0}, "positive")],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(fw.InputError, match=message):
        Auto(**settings)


def test_models_in_train_mode_are_refused():
    with pytest.raises(fw.ModelError, match=r"call model.eval\(\) first"):
        fw.maximize(fw.Problem(tiny().train(), Output(0), BOX))
