"""The default: it keeps to its budget, and works on whatever model it is given."""

from __future__ import annotations

import time

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import facetwalk as fw
from facetwalk.models import PerProblemModel
from facetwalk.objectives import Margin, Output
from facetwalk.sites import discover
from facetwalk.solvers import ActivationDescent, Adam, Auto, Method, Recombination, Sign
from facetwalk.zoo import StackedNetworks, random_network

BOX = fw.Box(-1, 1, shape=(3,))


def tiny(relus: bool = True) -> nn.Sequential:
    return random_network((3, 4, 1), 0) if relus else nn.Sequential(nn.Linear(3, 1)).eval()


def looks_at_relus(method: Method) -> bool:
    return any(isinstance(solver, ActivationDescent) for solver in method.rounds)


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


@pytest.mark.parametrize("relus", [True, False], ids=["ReLUs", "no ReLUs"])
@pytest.mark.parametrize("budget", [1, 2, 50, 199, 200, 201, 333, 1500, 5000])
def test_counted_evaluations_are_those_of_the_plan(budget, relus):
    problem = fw.Problem(tiny(relus), Output(0), BOX)
    result = fw.maximize(problem, evaluations=budget)
    (spent,) = result.evaluations.backward.tolist()
    assert 0.9 * budget <= spent <= budget
    assert result.solver == Auto(evaluations=budget).plan(relus)
    assert result.solver.evaluations == spent


def test_momentum_is_for_the_last_digit():
    for last_digit, momentum in ((True, 0.5), (False, 0.0)):
        for budget in (10, 300, 5000):
            plan = Auto(evaluations=budget).plan(to_the_last_digit=last_digit)
            climbers = [solver for solver in plan.rounds if isinstance(solver, Sign)]
            assert {solver.momentum for solver in climbers} == {momentum}


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
    assert threshold.solver.polish is threshold.solver.finish is None
    assert 540 <= threshold.evaluations.backward.item() <= 600
    for budget in (200, 999, 5000):
        plan = Auto(evaluations=budget).plan(to_the_last_digit=False)
        assert 0.9 * budget <= plan.evaluations <= budget


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


class Strict(PerProblemModel):
    """Keeps to the letter of the contract: k * count rows, or fewer than count."""

    def __init__(self, states: Tensor, net: nn.Module) -> None:
        super().__init__()
        self.states, self.net = states, net
        self.eval()

    @property
    def count(self) -> int:
        return len(self.states)

    def select(self, rows: Tensor) -> Strict:
        return Strict(self.states[rows], self.net)

    def forward(self, x: Tensor) -> Tensor:
        assert len(x) < self.count or len(x) % self.count == 0
        copies = max(1, len(x) // self.count)
        return self.net(torch.cat([self.states.repeat(copies, 1)[: len(x)], x], 1))


class TestModels:
    """What the default does not know it does without."""

    @pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
    @pytest.mark.parametrize(
        "compile",
        [torch.jit.script, lambda net: torch.jit.trace(net, torch.zeros(2, 3))],
        ids=["script", "trace"],
    )
    def test_torchscript(self, compile):
        net = tiny()
        result = fw.maximize(fw.Problem(compile(net).eval(), Output(0), BOX), evaluations=300)
        assert not looks_at_relus(result.solver)
        open_ = fw.maximize(fw.Problem(net, Output(0), BOX), evaluations=300)
        assert result.value.item() == pytest.approx(open_.value.item(), abs=1e-4)

    def test_linear(self):
        net = tiny(relus=False)
        result = fw.maximize(fw.Problem(net, Output(0), BOX))
        best = net[0].weight.abs().sum() + net[0].bias.sum()
        assert result.value.item() == pytest.approx(best.item())
        assert not looks_at_relus(result.solver)

    def test_smooth(self):
        net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)).eval()
        result = fw.maximize(fw.Problem(net, Output(0), BOX), evaluations=300)
        axis = torch.linspace(-1, 1, 21)
        grid = net(torch.cartesian_prod(axis, axis, axis)).max().item()
        assert result.value.item() >= grid - 1e-3

    def test_rows_that_see_each_other(self):
        class Centred(nn.Module):
            def forward(self, x):
                return torch.relu(x - x.mean(0)).sum(1, keepdim=True) + x[:, :1]

        result = fw.maximize(fw.Problem(Centred().eval(), Output(0), BOX), evaluations=100)
        assert not looks_at_relus(result.solver)

    def test_a_network_for_each_problem(self):
        nets = [random_network((3, 6, 1), seed).double() for seed in range(5)]
        together = fw.maximize(fw.Problem(StackedNetworks(nets), Output(0), BOX), evaluations=300)
        for i, net in enumerate(nets):
            alone = fw.maximize(fw.Problem(net, Output(0), BOX), evaluations=300, seed=i)
            assert alone.value.item() == pytest.approx(together.value[i].item(), abs=1e-4)

    @pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
    def test_a_state_for_each_problem(self, count):
        generator = torch.Generator().manual_seed(0)
        model = Strict(torch.randn(count, 2, generator=generator), random_network((5, 9, 1), 0))
        result = fw.maximize(fw.Problem(model, Output(0), BOX), evaluations=200)
        assert (result.value >= result.initial_value).all()

    @pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
    def test_any_precision(self, dtype):
        problem = fw.Problem(tiny().to(dtype), Output(0), BOX)
        result = fw.maximize(problem, evaluations=250)
        assert result.x.dtype == dtype
        assert result.value.item() >= result.initial_value.item()

    def test_any_output(self):
        class TwoHeads(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = tiny()

            def forward(self, x):
                return {"score": self.net(x)[:, 0], "rest": (x,)}

        problem = fw.Problem(TwoHeads().eval(), lambda out: out["score"], BOX)
        plain = fw.Problem(tiny(), Output(0), BOX)
        results = [fw.maximize(p, evaluations=300).x for p in (problem, plain)]
        assert torch.equal(*results)


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


class Slow(nn.Module):
    """Takes a few milliseconds a pass, whatever the number of rows."""

    def __init__(self, pause: float) -> None:
        super().__init__()
        self.net, self.pause = tiny(), pause

    def forward(self, x: Tensor) -> Tensor:
        time.sleep(self.pause)
        return self.net(x)


class TestSeconds:
    """Tolerances are wide: these run on machines that do other things too."""

    def test_the_default_uses_its_time_and_ends(self):
        result = fw.maximize(fw.Problem(tiny(), Output(0), BOX), seconds=1.0)
        assert 0.6 < result.seconds < 2.5
        assert result.evaluations.backward.item() > 200

    @pytest.mark.parametrize("batch_size", [4, None])
    def test_chunks_share_it(self, batch_size):
        centers = torch.rand(8, 3, generator=torch.Generator().manual_seed(0))
        problem = fw.Problem(tiny(), Output(0), fw.LinfBall(centers, eps=0.1))
        result = fw.maximize(problem, seconds=0.8, batch_size=batch_size)
        assert 0.4 < result.seconds < 2.5
        spent = result.evaluations.backward
        assert spent.min() > 0
        assert spent.max() < 20 * spent.min()

    def test_slow_models_end_in_time_too(self):
        result = fw.maximize(fw.Problem(Slow(0.01).eval(), Output(0), BOX), seconds=0.5)
        assert result.seconds < 2.0
        assert result.value.item() >= result.initial_value.item()

    def test_too_little_time_is_still_one_evaluation(self):
        result = fw.maximize(fw.Problem(Slow(0.02).eval(), Output(0), BOX), seconds=1e-6)
        assert result.evaluations.backward.item() >= 1
        assert torch.isfinite(result.value).all()

    def test_generations_that_were_skipped_are_an_early_end(self):
        solver = Recombination(
            population=2, generations=10**5, first=Sign(steps=5), inner=Sign(steps=5)
        )
        result = fw.maximize(fw.Problem(tiny(), Output(0), BOX), solver=solver, seconds=0.3)
        assert result.seconds < 2.5
        assert set(result.status) == {fw.Status.STOPPED}

    def test_any_solver_stops(self):
        began = time.perf_counter()
        result = fw.maximize(
            fw.Problem(tiny(), Output(0), BOX), solver=Sign(steps=10**6), seconds=0.4
        )
        assert time.perf_counter() - began < 2.5
        assert 0 < result.evaluations.backward.item() < 10**6

    def test_a_solver_that_is_done_before_does_not_wait(self):
        problem = fw.Problem(tiny(), Output(0), BOX)
        timed = fw.maximize(problem, solver=Sign(steps=20), seconds=60)
        assert timed.seconds < 30
        assert torch.equal(timed.x, fw.maximize(problem, solver=Sign(steps=20)).x)

    def test_as_a_setting_of_auto(self):
        steps = []

        def watch(step: fw.Step) -> bool:
            steps.append(time.perf_counter())
            return steps[-1] - steps[0] > 2.5

        result = fw.maximize(
            fw.Problem(tiny(), Output(0), BOX), solver=Auto(seconds=0.3), callback=watch
        )
        assert result.seconds < 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solver": Sign(), "evaluations": 100}, "evaluations= is the budget of Auto"),
        ({"solver": Recombination(), "evaluations": 100}, "leave one of them out"),
        ({"evaluations": 0}, "at least 1; it is 0"),
        ({"evaluations": 1e3}, "evaluations must be a whole number"),
        ({"solver": Sign}, "the solver must be one of facetwalk.solvers"),
        ({"seconds": 0}, "seconds must be positive; it is 0"),
        ({"seconds": -1.0}, "seconds must be positive; it is -1.0"),
        ({"seconds": float("nan")}, "seconds must be positive"),
        ({"solver": Sign(), "seconds": -2}, "seconds must be positive; it is -2"),
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
