"""Populations know nothing of each other: batches, chunks, starts, leaving."""

import pytest
import torch
from populations import NET, spaces

import facetwalk as fw
from facetwalk.objectives import CrossEntropy, Output
from facetwalk.solvers import ActivationDescent, AdrGd, Recombination, Sign
from facetwalk.zoo import StackedNetworks, random_network

SETTINGS = {
    "activation descent": Recombination(
        population=4,
        generations=3,
        first=ActivationDescent(steps=12),
        inner=ActivationDescent(steps=12, step_size=0.5),
        redrawn=0.1,
    ),
    "sign": Recombination(
        population=3, generations=3, first=Sign(steps=12), inner=Sign(steps=7, step_size=0.5)
    ),
    "adr-gd": Recombination(
        population=2, generations=2, first=AdrGd(steps=7), inner=AdrGd(steps=5)
    ),
}
every_setting = pytest.mark.parametrize("solver", SETTINGS.values(), ids=SETTINGS)


class TestRows:
    def problem(self, count: int = 6, kind: str = "linf") -> fw.Problem:
        return fw.Problem(NET, CrossEntropy(torch.arange(count) % 4), spaces(count)[kind])

    @every_setting
    def test_a_network_for_each_problem_is_what_they_are_alone(self, solver):
        nets = [random_network((8, 12, 10, 1), seed).double() for seed in range(5)]
        space = fw.Box(-1, 1, shape=(8,))
        together = fw.maximize(
            fw.Problem(StackedNetworks(nets), Output(0), space), solver=solver, starts=2
        )
        for i, net in enumerate(nets):
            alone = fw.maximize(fw.Problem(net, Output(0), space), solver=solver, starts=2, seed=i)
            torch.testing.assert_close(alone.x[0], together.x[i], rtol=1e-6, atol=1e-8)

    @every_setting
    @pytest.mark.parametrize("batch_size", [1, 5, 23])
    def test_chunks_change_nothing_and_divide_no_population(self, solver, batch_size):
        whole = fw.maximize(self.problem(), solver=solver, starts=2, seed=3, trace=True)
        sizes = []
        parts = fw.maximize(
            self.problem(),
            solver=solver,
            starts=2,
            seed=3,
            trace=True,
            batch_size=batch_size,
            callback=lambda step: sizes.append(len(step.x)),
        )
        assert max(sizes) <= max(batch_size, solver.population)
        assert not any(size % solver.population for size in sizes)
        torch.testing.assert_close(parts.x, whole.x, rtol=1e-8, atol=1e-9)
        torch.testing.assert_close(parts.value, whole.value)
        torch.testing.assert_close(parts.initial_value, whole.initial_value)
        torch.testing.assert_close(parts.trace.best, whole.trace.best)
        assert torch.equal(parts.evaluations.backward, whole.evaluations.backward)

    @every_setting
    def test_starts_are_populations_of_their_own(self, solver):
        walks, results = [], []
        for starts in (1, 2):
            seen = []
            result = fw.maximize(
                self.problem(),
                solver=solver,
                starts=starts,
                seed=3,
                callback=lambda step, seen=seen: seen.append(step.x),
            )
            walks.append([x.unflatten(0, (6, starts, solver.population)) for x in seen])
            results.append(result)
        for one, two in zip(*walks, strict=True):
            torch.testing.assert_close(two[:, 0], one[:, 0])
            assert not torch.allclose(two[:, 1], one[:, 0])
        one, two = results
        assert (two.value >= one.value - 1e-9).all()
        assert torch.equal(two.evaluations.backward, 2 * one.evaluations.backward)

    @every_setting
    def test_those_that_leave_do_not_change_the_others(self, solver):
        problem, counts = self.problem(10), []
        free = fw.maximize(problem, solver=solver)
        threshold = free.value.median().item() - 1e-9
        result = fw.maximize(
            problem, solver=solver, stop_at=threshold, callback=lambda s: counts.append(len(s.x))
        )
        reached = result.value >= threshold
        assert 0 < reached.sum() < 10
        assert counts[-1] < counts[0] == 10 * solver.population
        torch.testing.assert_close(result.x[~reached], free.x[~reached], rtol=1e-8, atol=1e-9)
        backward, most = result.evaluations.backward, solver.evaluations
        assert (backward[~reached] == most).all()
        assert (backward[reached] <= most).all()
        assert (backward[reached] < most).any()

    @every_setting
    def test_evaluations_are_population_times_steps(self, solver):
        result = fw.maximize(self.problem(), solver=solver, starts=3, trace=True)
        gradients = sum(s.steps * s.gradients_per_step for s in solver.rounds)
        assert result.evaluations.backward.tolist() == [3 * solver.population * gradients] * 6
        assert solver.steps == sum(s.steps for s in solver.rounds)
        assert len(solver.rounds) == solver.generations
        assert result.trace.evaluations[-1] == solver.population * gradients
        torch.testing.assert_close(result.trace.best[:, -1], result.value)

    def test_one_generation_is_starts(self):
        solver = Recombination(population=4, generations=1, first=Sign(steps=15), mixed=False)
        bred = fw.maximize(self.problem(), solver=solver, seed=2)
        starts = fw.maximize(self.problem(), solver=Sign(steps=15), starts=4, seed=2)
        assert torch.equal(bred.x, starts.x)

    def test_same_seed_same_result(self):
        solver = SETTINGS["activation descent"]
        a, b, c = (fw.maximize(self.problem(), solver=solver, seed=s) for s in (5, 5, 6))
        assert torch.equal(a.x, b.x)
        assert not torch.equal(a.x, c.x)

    @pytest.mark.parametrize("every", [True, False])
    def test_given_points_are_those_of_first_members(self, every):
        problem, first = self.problem(), []
        points = problem.space.sample(
            fw.streams.Streams.from_seeds(torch.arange(6), torch.full((6,), 99))
        )
        both = torch.stack([points, problem.space.center], 1)
        fw.maximize(
            problem,
            solver=SETTINGS["sign"],
            x0=both if every else points,
            starts=2,
            callback=lambda step: first.append(step.x),
        )
        rows = first[0].unflatten(0, (6, 2, 3))
        assert torch.equal(rows[:, 0, 0], points)
        assert torch.equal(rows[:, 1, 0], problem.space.center) == every
        rest = torch.cat([rows[:, :, 1:].flatten(0, 2), points])
        assert len(rest.unique(dim=0)) == len(rest)
