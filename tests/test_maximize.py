"""The call itself: starts, chunks, seeds, stopping, traces, counts."""

from dataclasses import replace

import pytest
import torch
from small_classifier import QUICK, batch, classifier
from torch import nn

import facetwalk as fw
from facetwalk.solvers import Adam, AdrGd, Apgd, Sign
from facetwalk.zoo import MODEL_A, random_network


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


class TestTooManyRowsForTheMemory:
    problem = fw.Problem(OnlyFewRows().eval(), fw.objectives.Output(0), fw.Box(-1, 1, shape=(3,)))

    def test_they_run_in_parts_and_the_result_is_the_same(self):
        options = {"solver": QUICK, "starts": 20, "x0": "sample", "trace": True}
        parts = fw.maximize(self.problem, **options)
        whole = fw.maximize(self.problem, **options, batch_size=4)
        assert parts.value.item() == 1
        assert torch.equal(parts.x, whole.x)
        assert torch.equal(parts.trace.best, whole.trace.best)
        assert torch.equal(parts.evaluations.backward, whole.evaluations.backward)
        assert torch.equal(parts.evaluations.forward, whole.evaluations.forward)

    def test_a_chunk_that_fails_in_the_middle_leaves_nothing_behind(self):
        class Tires(nn.Module):
            calls = 0

            def forward(self, x):
                self.calls += len(x) > 4
                if len(x) > 4 and self.calls > 5:
                    raise torch.OutOfMemoryError("CUDA out of memory")
                return x.sin()

        centers = torch.linspace(-1, 1, 10)[:, None]
        problem, again = (
            fw.Problem(net.eval(), fw.objectives.Output(0), fw.LinfBall(centers, 0.5))
            for net in (Tires(), Tires())
        )
        tired = fw.maximize(problem, solver=QUICK, stop_at=0.9)
        fresh = fw.maximize(again, solver=QUICK, stop_at=0.9, batch_size=4)
        assert problem.model.calls == 6
        assert torch.equal(tired.x, fresh.x)
        assert tired.status == fresh.status
        assert torch.equal(tired.evaluations.backward, fresh.evaluations.backward)

    def test_a_batch_size_that_is_given_is_kept(self):
        with pytest.raises(fw.InputError, match="memory for 20 rows at once: pass a smaller batch"):
            fw.maximize(self.problem, solver=QUICK, starts=20, batch_size=20)

    def test_a_population_is_not_divided(self):
        solver = fw.solvers.Recombination(population=6, generations=2, first=QUICK, inner=QUICK)
        with pytest.raises(fw.InputError, match="memory for 6 rows at once: choose a solver with"):
            fw.maximize(self.problem, solver=solver)


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
