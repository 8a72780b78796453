"""How the default lays a budget out."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_networks import BOX, looks_at_relus, tiny

import facetwalk as fw
from facetwalk.objectives import Output
from facetwalk.solvers import ActivationDescent, Adam, Auto, Recombination, Sign


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.integers(1, 5000))
def test_plans_spend_nearly_all_and_never_more(budget):
    for relus in (True, False):
        plan = Auto(evaluations=budget).plan(relus)
        assert 0.9 * budget <= plan.evaluations <= budget
        assert looks_at_relus(plan) == relus


@pytest.mark.parametrize("budget", [10_000, 54_321, 10**6])
def test_large_plans_too(budget):
    plan = Auto(evaluations=budget).plan()
    assert 0.9 * budget <= plan.evaluations <= budget


def test_momentum_is_for_the_last_digit_and_for_the_last_push_to_a_threshold():
    for last_digit, momentum in ((True, 0.5), (False, 0.0)):
        for budget in (10, 300, 5000):
            plan = Auto(evaluations=budget).plan(to_the_last_digit=last_digit)
            last = getattr(plan, "polish", None)
            climbers = [each for each in plan.rounds if isinstance(each, Sign) and each != last]
            assert {solver.momentum for solver in climbers} == {momentum}


def test_small_budgets_are_one_run_and_large_ones_populations():
    assert isinstance(Auto(evaluations=10).plan(), ActivationDescent)
    large = Auto(evaluations=2000).plan()
    assert isinstance(large, Recombination)
    assert large.population > 1
    assert large.generations > 1
    assert large.inner.step_size < large.first.step_size


@pytest.mark.parametrize(("to_the_last_digit", "rounds"), [(True, 5), (False, 24)])
def test_a_large_budget_is_spent_on_populations_after_one_another(to_the_last_digit, rounds):
    def plan(budget: int) -> Recombination:
        return Auto(evaluations=budget).plan(to_the_last_digit=to_the_last_digit)

    assert plan(300).epochs == 1
    for budget in (30_000, 10**5, 10**6):
        assert plan(budget).epochs > 1
        assert plan(budget).generations == pytest.approx(rounds, rel=0.4)


@pytest.mark.parametrize(
    ("budget", "population", "polish", "finish"),
    [
        (160, 4, 5, 5),
        (600, 4, 18, 19),
        (1000, 4, 31, 31),
        (5000, 9, 69, 69),
        (10_000, 13, 96, 96),
        (30_000, 22, 100, 100),
        (10**6, 129, 100, 100),
    ],
)
@pytest.mark.parametrize("relus", [True, False])
def test_to_the_last_digit_a_quarter_is_spent_on_ever_smaller_steps(
    budget, population, polish, finish, relus
):
    plan = Auto(evaluations=budget).plan(relus)
    assert isinstance(plan, Recombination)
    assert plan.population == population
    assert plan.polish == Adam(steps=polish, step_size=0.2)
    assert plan.finish == Adam(steps=finish, step_size=0.02)
    assert plan.rounds[-2:] == (plan.polish, plan.finish)


def test_a_small_budget_leaves_nothing_to_polish():
    for budget in (20, 50, 79, 150):
        plan = Auto(evaluations=budget).plan()
        assert isinstance(plan, Recombination)
        assert plan.polish is plan.finish is None


def test_the_last_digits_are_not_sought_where_a_threshold_is_asked_for():
    problem = fw.Problem(tiny(), Output(0), BOX)
    digits = fw.maximize(problem, evaluations=600).solver
    assert None not in (digits.polish, digits.finish)
    threshold = fw.maximize(problem, evaluations=600, stop_at=1e9)
    assert isinstance(threshold.solver.polish, ActivationDescent)
    assert threshold.solver.finish is None
    assert 540 <= threshold.evaluations.backward.item() <= 600
    for budget in (200, 999, 5000):
        plan = Auto(evaluations=budget).plan(to_the_last_digit=False)
        assert 0.9 * budget <= plan.evaluations <= budget


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(1, 5000), st.sampled_from([64, 128, 150_528]))
def test_many_inputs_get_one_long_run_or_longer_rounds(budget, inputs):
    auto = Auto(evaluations=budget)
    plan = auto.plan(inputs=inputs)
    assert 0.9 * budget <= plan.evaluations <= budget
    if budget < 160:
        assert plan == ActivationDescent(steps=budget, momentum=0.5)
    else:
        assert all(each.steps >= 20 for each in plan.rounds if isinstance(each, Sign))
    assert auto.plan(to_the_last_digit=False, inputs=inputs) == auto.plan(to_the_last_digit=False)
    assert auto.plan(inputs=inputs, alternatives=True) == auto.plan()


def test_a_small_budget_is_spent_near_a_start_that_is_given():
    near = ActivationDescent(steps=49, momentum=0.5, step_size=0.5)
    assert Auto(evaluations=49).plan(start_is_given=True) == near
    for budget in (50, 1000):
        auto = Auto(evaluations=budget)
        assert auto.plan(start_is_given=True) == auto.plan()
    for other in ({"to_the_last_digit": False}, {"alternatives": True}):
        assert isinstance(Auto(evaluations=20).plan(start_is_given=True, **other), Recombination)
