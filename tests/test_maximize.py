"""The call itself: starts, chunks, stopping, counts, seeds, errors, and leaving things alone."""

import copy
from dataclasses import dataclass, replace

import pytest
import torch
from torch import nn

import facetwalk as fw
from facetwalk.models import PerProblemModel
from facetwalk.solvers import Adam, AdrGd, Apgd, Gd, Sign
from facetwalk.zoo import MODEL_A, StackedNetworks, random_network

QUICK = Sign(steps=20)


def classifier(seed=0) -> nn.Sequential:
    return random_network((6, 16, 12, 3), seed).double()


def batch(count=7):
    generator = torch.Generator().manual_seed(2)
    x = torch.rand(count, 6, generator=generator, dtype=torch.float64)
    labels = torch.arange(count) % 3
    space = fw.LinfBall(x, eps=0.3, bounds=(0, 1))
    return fw.Problem(classifier(), fw.objectives.Margin(labels), space)


def test_the_readme_examples_work():
    model = random_network(MODEL_A, seed=0)
    problem = fw.Problem(model, fw.objectives.Output(0), fw.Box(-1, 1, shape=(10,)))
    result = fw.maximize(problem, solver=AdrGd(steps=30), starts=1, seed=0, trace=True)
    assert result.x.shape == (1, 10)
    assert result.value.shape == (1,)
    assert result.evaluations.forward.shape == (1,)
    assert result.trace is not None


def test_best_of_the_starts_is_returned_for_each_problem():
    problem = batch()
    best = fw.maximize(problem, solver=QUICK, starts=5, seed=3)
    rows = {}
    fw.maximize(
        problem, solver=QUICK, starts=5, seed=3, callback=lambda s: rows.update(best=s.best)
    )
    by_problem = rows["best"].reshape(7, 5).amax(1)
    assert (best.value >= by_problem - 1e-12).all()
    assert (best.value > fw.maximize(problem, solver=QUICK, seed=3).value - 1e-12).all()
    assert (rows["best"].reshape(7, 5).std(1) > 0).any()


@pytest.mark.parametrize("solver", [QUICK, Apgd(steps=20), AdrGd(steps=20), Adam(steps=20)])
@pytest.mark.parametrize("batch_size", [1, 3, 4, 10, 1000])
def test_chunks_do_not_change_the_result(solver, batch_size):
    problem = batch()
    whole = fw.maximize(problem, solver=solver, starts=3, seed=1, trace=True)
    sizes = []
    parts = fw.maximize(
        problem,
        solver=solver,
        starts=3,
        seed=1,
        batch_size=batch_size,
        trace=True,
        callback=lambda step: sizes.append(len(step.x)),
    )
    assert max(sizes) <= batch_size
    assert torch.allclose(parts.value, whole.value, atol=1e-9)
    assert torch.allclose(parts.x, whole.x, atol=1e-9)
    assert torch.allclose(parts.trace.best, whole.trace.best, atol=1e-9)
    assert torch.equal(parts.evaluations.backward, whole.evaluations.backward)
    assert torch.allclose(parts.initial_value, whole.initial_value, atol=1e-12)


def test_same_seed_same_result_and_another_seed_another():
    problem = batch()
    a, b, c = (fw.maximize(problem, solver=QUICK, x0="sample", seed=s) for s in (5, 5, 6))
    assert torch.equal(a.x, b.x)
    assert not torch.equal(a.x, c.x)


def test_any_problem_can_be_run_again_alone_with_its_own_seed():
    problem = batch()
    together = fw.maximize(problem, solver=QUICK, x0="sample", starts=2, seed=40)
    row = torch.tensor([4])
    alone = fw.Problem(problem.model, problem.objective.select(row), problem.space.select(row))
    again = fw.maximize(alone, solver=QUICK, x0="sample", starts=2, seed=44)
    assert torch.allclose(again.x[0], together.x[4])


class OnlyFewRows(nn.Module):
    def forward(self, x):
        if len(x) > 4:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return x


def test_too_many_rows_for_the_memory_are_said_in_words():
    problem = fw.Problem(OnlyFewRows().eval(), fw.objectives.Output(0), fw.Box(-1, 1, shape=(3,)))
    with pytest.raises(fw.InputError, match="not enough memory for 20 rows at once: pass a sm"):
        fw.maximize(problem, solver=QUICK, starts=20)
    fine = fw.maximize(problem, solver=QUICK, starts=20, batch_size=4)
    assert fine.value.item() == 1


class TestSeeds:
    def test_each_problem_may_have_its_own(self):
        problem, seeds = batch(), torch.tensor([40, 3, 40, 0, -7, 10**12, 5])
        together = fw.maximize(problem, solver=QUICK, x0="sample", starts=2, seed=seeds)
        for b, seed in enumerate(seeds.tolist()):
            row = torch.tensor([b])
            alone = fw.Problem(
                problem.model, problem.objective.select(row), problem.space.select(row)
            )
            again = fw.maximize(alone, solver=QUICK, x0="sample", starts=2, seed=seed)
            assert torch.allclose(again.x[0], together.x[b])

    @pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
    def test_a_number_is_that_and_those_that_follow(self, dtype):
        seeds = 5 + torch.arange(7).to(dtype)
        for batch_size in (None, 3):
            one, each = (
                fw.maximize(batch(), solver=QUICK, x0="sample", seed=s, batch_size=batch_size)
                for s in (5, seeds)
            )
            assert torch.equal(one.x, each.x)
        assert one.seed == 5
        assert torch.equal(each.seed, seeds)

    @pytest.mark.parametrize(
        "seed",
        [
            torch.arange(6),
            torch.arange(8),
            torch.tensor(3),
            torch.zeros(7, 1, dtype=torch.int64),
            torch.zeros(7),
            torch.zeros(7, dtype=torch.bool),
        ],
        ids=["few", "many", "one", "column", "floats", "flags"],
    )
    def test_others_are_refused(self, seed):
        with pytest.raises(fw.InputError, match="one for each of the 7 problems; it is torch"):
            fw.maximize(batch(), solver=QUICK, seed=seed)


class TestStarts:
    def test_the_centre_is_the_first_start(self):
        problem, first = batch(), []
        fw.maximize(problem, solver=QUICK, starts=2, callback=lambda s: first.append(s.x))
        assert torch.equal(first[0][::2], problem.space.center)
        assert not torch.equal(first[0][1::2], problem.space.center)

    def test_given_points_are_the_first_start_or_all(self):
        problem, first = batch(), []
        points = problem.space.center.clone()
        points[:, 0] = (points[:, 0] + 0.1).clamp(max=1)
        both = torch.stack([points, problem.space.center], 1)
        fw.maximize(
            problem, solver=QUICK, x0=points, starts=2, callback=lambda s: first.append(s.x)
        )
        assert torch.equal(first[0][::2], points)
        fw.maximize(problem, solver=QUICK, x0=both, starts=2, callback=lambda s: first.append(s.x))
        assert torch.equal(first[20], both.flatten(0, 1))

    def test_samples_differ_between_problems_and_starts(self):
        first = []
        problem = fw.Problem(classifier(), fw.objectives.Output(0), fw.Box(-1, 1, shape=(6,)))
        fw.maximize(
            problem, solver=QUICK, x0="sample", starts=4, callback=lambda s: first.append(s.x)
        )
        assert len({tuple(row) for row in first[0].tolist()}) == 4

    def test_the_callers_points_are_not_changed(self):
        problem = batch()
        points = problem.space.center.clone()
        kept = points.clone()
        fw.maximize(problem, solver=QUICK, x0=points)
        assert torch.equal(points, kept)


class TestStopping:
    def test_problems_that_reach_the_threshold_leave_the_batch(self):
        problem, rows = batch(12), []
        final = fw.maximize(problem, solver=replace(QUICK, steps=60)).value
        threshold = final.sort().values[6].item() - 1e-9
        result = fw.maximize(
            problem,
            solver=replace(QUICK, steps=60),
            stop_at=threshold,
            callback=lambda s: rows.append(len(s.value)),
        )
        reached = result.value >= threshold
        assert [status == fw.Status.REACHED for status in result.status] == reached.tolist()
        assert 0 < reached.sum() < 12
        assert rows[0] == 12
        assert rows[-1] < 12
        assert rows == sorted(rows, reverse=True)
        assert (result.evaluations.backward[~reached] == 60).all()
        assert (result.evaluations.backward[reached] < 60).any()

    def test_those_that_remain_walk_on_as_if_nothing_happened(self):
        problem = batch(12)
        alone = fw.maximize(problem, solver=QUICK, starts=3)
        threshold = alone.value.median().item() - 1e-9
        result = fw.maximize(problem, solver=QUICK, starts=3, stop_at=threshold)
        rest = result.value < threshold
        assert rest.any()
        assert torch.allclose(result.x[rest], alone.x[rest])

    def test_every_problem_may_have_its_own_threshold(self):
        problem = batch(4)
        thresholds = torch.tensor([-1e9, 1e9, -1e9, 1e9])
        result = fw.maximize(problem, solver=QUICK, stop_at=thresholds)
        assert [str(s) for s in result.status] == ["reached", "finished", "reached", "finished"]
        assert result.evaluations.backward.tolist() == [1, 20, 1, 20]

    def test_starts_in_later_chunks_of_a_solved_problem_are_skipped(self):
        problem = batch(2)
        result = fw.maximize(problem, solver=QUICK, starts=4, stop_at=-1e9, batch_size=2)
        assert result.evaluations.backward.tolist() == [2, 2]

    def test_a_callback_can_stop_the_work(self):
        problem = batch(6)
        result = fw.maximize(
            problem, solver=QUICK, batch_size=3, callback=lambda step: step.step == 5
        )
        assert result.evaluations.backward.tolist() == [5, 5, 5, 0, 0, 0]
        assert set(result.status) == {fw.Status.STOPPED}
        assert (result.value[:3] > result.initial_value[:3]).any()
        assert problem.space.contains(result.x).all()


class TestTrace:
    def test_it_is_the_running_best_of_what_callbacks_see(self):
        problem, values = batch(), []
        result = fw.maximize(
            problem, solver=QUICK, trace=True, callback=lambda s: values.append(s.value)
        )
        best = torch.stack(values, 1).cummax(1).values
        assert torch.equal(result.trace.best[:, :-1], best[:, :-1])
        assert torch.allclose(result.trace.best[:, -1], result.value)
        assert result.trace.evaluations.tolist() == list(range(1, 21))

    def test_long_runs_are_thinned_and_end_at_the_value(self):
        problem = batch()
        result = fw.maximize(problem, solver=Sign(steps=1000), trace=True)
        assert len(result.trace.evaluations) == 200
        assert result.trace.evaluations[-1] == 1000
        assert torch.allclose(result.trace.best[:, -1], result.value)
        assert (result.trace.best.diff(dim=1) >= 0).all()

    def test_problems_that_left_keep_their_last_value(self):
        result = fw.maximize(batch(3), solver=QUICK, trace=True, stop_at=-1e9)
        assert torch.isfinite(result.trace.best).all()

    def test_it_is_off_by_default(self):
        assert fw.maximize(batch(), solver=QUICK).trace is None


class TestOwnParts:
    def test_a_plain_function_is_an_objective(self):
        net = classifier()
        space = fw.Box(-1, 1, shape=(6,))
        own = fw.maximize(fw.Problem(net, lambda y: -y[:, 1], space), solver=QUICK)
        ours = fw.maximize(fw.Problem(net, fw.objectives.Output(1, sign=-1), space), solver=QUICK)
        assert torch.equal(own.x, ours.x)

    def test_an_objective_of_ones_own_may_hold_numbers_and_rows(self):
        @dataclass(frozen=True, eq=False)
        class Weighted(fw.objectives.Objective):
            scale: torch.Tensor
            index: torch.Tensor

            def __call__(self, outputs):
                return self.scale * outputs.gather(1, self.index[:, None]).squeeze(1)

        net, space = classifier(), fw.Box(-1, 1, shape=(6,))
        index = torch.tensor([2, 0, 1])
        own = Weighted(torch.tensor(-3.0), index)
        together = fw.maximize(fw.Problem(net, own, space), solver=QUICK, starts=2, batch_size=4)
        for b, output in enumerate(index.tolist()):
            alone = fw.Problem(net, fw.objectives.Output(output, sign=-1), space)
            value = fw.maximize(alone, solver=QUICK, starts=2, seed=b).value
            assert torch.allclose(3 * value[0], together.value[b])

    def test_a_function_may_take_any_output(self):
        class TwoHeads(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = classifier()

            def forward(self, x):
                return {"scores": self.net(x)}

        problem = fw.Problem(
            TwoHeads().eval(), lambda out: out["scores"][:, 0], fw.Box(-1, 1, shape=(6,))
        )
        assert fw.maximize(problem, solver=QUICK).value.item() > 0
        assert fw.maximize(problem, solver=AdrGd(steps=20)).value.item() > 0

    def test_a_space_of_ones_own(self):
        @dataclass(frozen=True)
        class Halfspace(fw.Space):
            """Points of a box around `middle` whose sum is at most that of `middle`."""

            middle: torch.Tensor

            @property
            def shape(self):
                return tuple(self.middle.shape[1:])

            @property
            def center(self):
                return self.middle

            @property
            def radius(self):
                return torch.ones_like(self.middle)

            def project(self, x):
                excess = (x - self.middle).sum(1, keepdim=True).clamp(min=0)
                return x - excess / x.shape[1]

        middle = torch.zeros(3, 6, dtype=torch.float64)
        problem = fw.Problem(
            classifier(), fw.objectives.Margin(torch.tensor([0, 1, 2])), Halfspace(middle)
        )
        result = fw.maximize(problem, solver=Sign(steps=30), starts=3, stop_at=50.0)
        assert (result.x.sum(1) <= 1e-9).all()
        assert (result.value > result.initial_value).all()

    def test_models_with_data_for_each_problem_follow_their_rows(self):
        nets = [random_network((4, 9, 1), seed) for seed in range(6)]
        space = fw.Box(-1, 1, shape=(4,))
        together = fw.maximize(
            fw.Problem(StackedNetworks(nets), fw.objectives.Output(0), space),
            solver=AdrGd(steps=25),
            starts=3,
            stop_at=4.0,
            batch_size=7,
        )
        for i, net in enumerate(nets):
            alone = fw.maximize(
                fw.Problem(net, fw.objectives.Output(0), space),
                solver=AdrGd(steps=25),
                starts=3,
                stop_at=4.0,
                seed=i,
                batch_size=7,
            )
            assert alone.value.item() == pytest.approx(together.value[i].item(), abs=1e-4)

    def test_a_state_that_is_fixed_for_each_problem(self):
        class Critic(PerProblemModel):
            def __init__(self, states, net):
                super().__init__()
                self.states, self.net = states, net
                self.eval()

            @property
            def count(self):
                return len(self.states)

            def select(self, rows):
                return Critic(self.states[rows], self.net)

            def forward(self, actions):
                copies = -(-len(actions) // self.count)
                states = self.states.repeat(copies, 1)[: len(actions)]
                return self.net(torch.cat([states, actions], 1))

        net = random_network((5, 20, 1), seed=0)
        states = torch.randn(8, 3, generator=torch.Generator().manual_seed(0))
        problem = fw.Problem(
            Critic(states, net), fw.objectives.Output(0), fw.Box(-1, 1, shape=(2,))
        )
        result = fw.maximize(problem, solver=Gd(steps=400), starts=8, batch_size=5)
        gated = fw.maximize(problem, solver=AdrGd(steps=20), starts=8, batch_size=5)
        assert (gated.value > gated.initial_value).all()
        axis = torch.linspace(-1, 1, 101)
        actions = torch.cartesian_prod(axis, axis)
        for i in range(8):
            best = net(torch.cat([states[i].expand(len(actions), 3), actions], 1)).max()
            assert result.value[i] >= best - 0.05


class TestPrecision:
    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
    def test_work_is_done_in_the_models_precision(self, dtype):
        net = classifier().to(dtype)
        space = fw.LinfBall(torch.full((3, 6), 0.5), eps=0.2, bounds=(0, 1))
        problem = fw.Problem(net, fw.objectives.CrossEntropy(torch.tensor([0, 1, 2])), space)
        for solver in (QUICK, Apgd(steps=10)):
            result = fw.maximize(problem, solver=solver, starts=2)
            assert result.x.dtype == dtype
            assert (result.value >= result.initial_value).all()

    def test_a_model_without_weights_follows_the_space(self):
        center = torch.zeros(2, 3, dtype=torch.float64)
        problem = fw.Problem(nn.ReLU().eval(), lambda y: y.sum(1), fw.L2Ball(center, eps=1.0))
        result = fw.maximize(problem, solver=QUICK, x0=center + 0.1)
        assert result.x.dtype == torch.float64
        assert result.value.tolist() == pytest.approx([3**0.5] * 2, abs=1e-2)


def snapshot(model):
    return {
        "state": {k: v.clone() for k, v in model.state_dict().items()},
        "flags": [
            (m.training, len(m._forward_hooks), len(m._forward_pre_hooks), len(m._backward_hooks))
            for m in model.modules()
        ],
        "grads": [(p.requires_grad, p.grad, p._version) for p in model.parameters()],
        "global hooks": (
            len(nn.modules.module._global_forward_hooks),
            len(nn.modules.module._global_forward_pre_hooks),
        ),
        "rng": torch.get_rng_state().clone(),
        "attributes": {k for m in model.modules() for k in vars(m)},
    }


def assert_same(before, after):
    assert all(torch.equal(before["state"][k], after["state"][k]) for k in before["state"])
    assert torch.equal(before["rng"], after["rng"])
    for part in ("flags", "grads", "global hooks", "attributes"):
        assert before[part] == after[part]


class Noisy(nn.Module):
    """Draws from the global generator and works in place, and fails after some calls."""

    def __init__(self, fails_after=10**9):
        super().__init__()
        self.conv = nn.Conv1d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm1d(4)
        self.out = nn.Linear(24, 3)
        self.act = nn.ReLU(inplace=True)
        object.__setattr__(self, "calls", [0, fails_after])

    def forward(self, x):
        self.calls[0] += 1
        if self.calls[0] > self.calls[1]:
            raise RuntimeError("out of luck")
        torch.rand(1)
        h = self.act(self.norm(self.conv(x[:, None])))
        return self.out(h.flatten(1))


@pytest.mark.parametrize("solver", [QUICK, Apgd(steps=8), AdrGd(steps=8)])
@pytest.mark.parametrize("fails_after", [10**9, 1, 3, 7])
def test_model_and_global_state_are_untouched_even_after_an_error(solver, fails_after):
    model = Noisy(fails_after).eval()
    model.conv.weight.requires_grad_(False)
    before = snapshot(model)
    problem = fw.Problem(
        model,
        fw.objectives.CrossEntropy(torch.tensor([0, 1, 2])),
        fw.LinfBall(torch.rand(3, 6, generator=torch.Generator().manual_seed(0)), eps=0.1),
    )
    before["rng"] = torch.get_rng_state().clone()
    if fails_after < 100:
        with pytest.raises((RuntimeError, fw.ModelError), match="out of luck"):
            fw.maximize(problem, solver=solver, starts=2)
    else:
        fw.maximize(problem, solver=solver, starts=2)
    assert_same(before, snapshot(model))


def test_nothing_of_the_problem_is_changed():
    problem = batch()
    kept = copy.deepcopy((problem.space.centers, problem.objective.labels))
    fw.maximize(problem, solver=AdrGd(steps=10), starts=2)
    assert torch.equal(problem.space.centers, kept[0])
    assert torch.equal(problem.objective.labels, kept[1])


def good(**changes):
    parts = {
        "model": classifier(),
        "objective": fw.objectives.Margin(torch.tensor([0, 1])),
        "space": fw.LinfBall(torch.zeros(2, 6, dtype=torch.float64), eps=1.0),
    } | changes
    return fw.Problem(**parts)


class Returns(nn.Module):
    def __init__(self, value):
        super().__init__()
        self.value = value

    def forward(self, x):
        return self.value(x)


BAD_CALLS = {
    "no module": (lambda: good(model=torch.relu), fw.InputError, "must be a torch.nn.Module"),
    "no space": (lambda: good(space=(0, 1)), fw.InputError, "the space must be a Box"),
    "no objective": (lambda: good(objective=3), fw.InputError, "must be callable"),
    "counts": (
        lambda: good(objective=fw.objectives.Margin(torch.tensor([0, 1, 2]))),
        fw.InputError,
        "describes 2 problems, the objective 3",
    ),
    "train mode": (
        lambda: fw.maximize(good(model=classifier().train())),
        fw.ModelError,
        r"call model.eval\(\) first",
    ),
    "a part in train mode": (
        lambda: fw.maximize(
            good(
                model=nn.Sequential(classifier(), nn.Dropout()).eval().append(nn.Dropout().train())
            )
        ),
        fw.ModelError,
        "a part of it",
    ),
    "wrong input shape": (
        lambda: fw.maximize(good(space=fw.LinfBall(torch.zeros(2, 5), eps=1.0))),
        fw.ModelError,
        r"fails on an input of shape \(2, 5\)",
    ),
    "labels out of range": (
        lambda: fw.maximize(good(objective=fw.objectives.Margin(torch.tensor([0, 3])))),
        fw.InputError,
        "labels run from 0 to 3, and the model has classes 0 to 2",
    ),
    "output out of range": (
        lambda: fw.maximize(good(objective=fw.objectives.Output(3))),
        fw.InputError,
        "the model has 3 outputs",
    ),
    "tuple of outputs": (
        lambda: fw.maximize(good(model=Returns(lambda x: (x, x)).eval())),
        fw.ModelError,
        "it returned a tuple",
    ),
    "scores of another shape": (
        lambda: fw.maximize(good(objective=lambda y: y)),
        fw.InputError,
        r"one score for each input, shape \(2,\)",
    ),
    "NaN": (
        lambda: fw.maximize(good(model=Returns(lambda x: x[:, :3] / 0).eval())),
        fw.ModelError,
        "NaN at the start",
    ),
    "starts": (lambda: fw.maximize(good(), starts=0), fw.InputError, "starts must be at least 1"),
    "batch size": (
        lambda: fw.maximize(good(), batch_size=0),
        fw.InputError,
        "batch_size must be at least 1",
    ),
    "x0 word": (lambda: fw.maximize(good(), x0="middle"), fw.InputError, "it is 'middle'"),
    "x0 shape": (
        lambda: fw.maximize(good(), x0=torch.zeros(6)),
        fw.InputError,
        r"pass \(2, 6\) for the first start",
    ),
    "x0 NaN": (
        lambda: fw.maximize(good(), x0=torch.full((2, 6), torch.nan)),
        fw.InputError,
        "x0 holds NaN",
    ),
    "x0 outside": (
        lambda: fw.maximize(good(), x0=torch.tensor([[0.0] * 6, [0.0] * 5 + [1.5]])),
        fw.InputError,
        "1 of 2 starting points lie outside",
    ),
    "thresholds": (
        lambda: fw.maximize(good(), stop_at=torch.zeros(3)),
        fw.InputError,
        "one for each of the 2 problems",
    ),
    "no ReLU": (
        lambda: fw.maximize(good(model=nn.Linear(6, 3).double().eval()), solver=AdrGd(steps=2)),
        fw.ModelError,
        "no ReLU was found",
    ),
}


@pytest.mark.parametrize(("call", "error", "message"), BAD_CALLS.values(), ids=BAD_CALLS)
def test_bad_input_gets_one_clear_sentence(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert isinstance(caught.value, fw.FacetwalkError)
    assert "\n" not in str(caught.value).strip() or "fails on" in str(caught.value)


def test_max_pool_network_warns_once_when_gates_are_used():
    net = nn.Sequential(
        nn.Conv1d(1, 4, 3), nn.ReLU(), nn.MaxPool1d(2), nn.Flatten(), nn.Linear(8, 3), nn.ReLU()
    ).eval()
    space = fw.Box(-3, 3, shape=(1, 6))
    problem = fw.Problem(net, fw.objectives.Output(0), space)
    with pytest.warns(fw.NotAffineWarning, match="not affine before 5#0"):
        fw.maximize(problem, solver=AdrGd(steps=2), starts=4)
    fw.maximize(problem, solver=QUICK, starts=4)


def test_progress_is_plain_lines_without_a_terminal_and_silent_by_default(capsys, monkeypatch):
    monkeypatch.setattr("facetwalk.progress._SECONDS_BETWEEN_LINES", 0.0)
    fw.maximize(batch(), solver=QUICK)
    assert capsys.readouterr() == ("", "")
    fw.maximize(batch(), solver=QUICK, progress=True, batch_size=4)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 40
    assert err.splitlines()[-1] == "Sign: 100% step 20 of 20, 3 rows"
