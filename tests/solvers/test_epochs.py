"""Epochs: what a population knows of those before it, and what is polished at the end."""

from typing import ClassVar

import pytest
import torch
from populations import NET, Still, bred, spaces
from scipy.stats import kstest

import facetwalk as fw
from facetwalk.objectives import Output
from facetwalk.solvers import Recombination, Sign


class TestEpochs:
    """Populations after one another, which know nothing of each other until the polish."""

    SETTINGS: ClassVar = {"population": 5, "generations": 3, "epochs": 3, "redrawn": 0.1}

    def test_each_begins_at_new_random_points(self):
        points, _, result = bred(fw.Box(-1, 3, shape=(8,)), **self.SETTINGS | {"population": 200})
        assert len(points) == 9
        assert result.solver.evaluations == 9 * 200
        for first in points[3], points[6]:
            assert kstest((first.flatten().numpy() + 1) / 4, "uniform").pvalue > 1e-3
        firsts = torch.cat([points[g][0] for g in (0, 3, 6)])
        assert len(firsts.unique(dim=0)) == 600

    def test_only_its_own_members_are_parents(self):
        points, _, _ = bred(spaces(3)["box"], **self.SETTINGS | {"redrawn": 0})
        for g in (4, 5, 7, 8):
            epoch = torch.cat(points[g // 3 * 3 : g], 1)
            for b in range(3):
                inherited = points[g][b][:, None] == epoch[b]
                assert inherited.any(1).all()

    def test_the_result_is_the_best_of_all(self):
        _, values, result = bred(spaces(3)["box"], **self.SETTINGS)
        torch.testing.assert_close(result.value, torch.cat(values, 1).amax(1))

    @pytest.mark.parametrize("population", [3, 5, 9])
    @pytest.mark.parametrize("name", ["polish", "finish"])
    def test_the_best_two_of_each_epoch_and_the_last_elites_are_polished(self, population, name):
        settings = self.SETTINGS | {"population": population, name: Still()}
        points, values, _ = bred(spaces(3)["box"], **settings, elites=4)
        polished = points[9]
        for b in range(3):
            value = [torch.cat([v[b] for v in values[e : e + 3]]) for e in (0, 3, 6)]
            x = [torch.cat([p[b] for p in points[e : e + 3]]) for e in (0, 3, 6)]
            tops = [v.topk(2 if e < 2 else 4).indices for e, v in enumerate(value)]
            known = torch.cat([v[top] for v, top in zip(value, tops, strict=True)])
            candidates = torch.cat([p[top] for p, top in zip(x, tops, strict=True)])
            order = known.argsort(descending=True)[: min(population, len(known))]
            for i, member in enumerate(polished[b]):
                assert torch.equal(member, candidates[order[i % len(order)]])

    @pytest.mark.parametrize("last", [("polish",), ("finish",), ("polish", "finish")])
    def test_a_deadline_skips_to_the_last_rounds_from_the_best_that_was_found(self, last):
        found, began = [], []

        class Noted(Sign):
            def init(self, task, x):
                began.append((self.step_size, x.unflatten(0, (2, 3))))
                return super().init(task, x)

        class Spy(Recombination):
            def learn(self, memory, rows, number):
                found.append(rows.best.unflatten(0, (2, 3)).amax(1))
                return super().learn(memory, rows, number)

        sizes = {"polish": 1e-5, "finish": 1e-6}
        solver = Spy(
            population=3,
            generations=3,
            epochs=2000,
            first=Sign(steps=2),
            inner=Sign(steps=2),
            **{name: Noted(steps=5, step_size=sizes[name]) for name in last},
        )
        problem = fw.Problem(NET, Output(0), spaces(2)["box"])
        result = fw.maximize(problem, solver=solver, seconds=1.0)
        assert 1 < len(found) < len(solver.rounds)
        assert [size for size, _ in began] == [sizes[name] for name in last]
        value = NET(began[0][1].flatten(0, 1))[:, 0].detach().unflatten(0, (2, 3))
        torch.testing.assert_close(value[:, 0], torch.stack(found[: -len(last)]).amax(0))
        assert (value.diff(dim=1) <= 1e-12).all()
        assert (result.value >= value[:, 0]).all()
