"""Activation descent's norms: where and how often they are measured, whom they serve."""

from dataclasses import fields, replace

import pytest
import torch
from torch import Tensor, nn

import facetwalk as fw
from facetwalk import normals
from facetwalk.objectives import CrossEntropy, Output
from facetwalk.solvers import ActivationDescent, Recombination, Sign
from facetwalk.zoo import random_network


class TestNorms:
    NET = random_network((6, 15, 12, 1), 4).double()
    SPACE = fw.LinfBall(torch.zeros(3, 6, dtype=torch.float64), eps=0.5)

    @pytest.mark.parametrize(
        ("change", "measured"),
        [
            ({"annealing": 1.0, "refresh": 30}, 4),
            ({"annealing": 0.5, "refresh": 30}, 2),
            ({"annealing": 0.6, "refresh": 30}, 2),
            ({"annealing": 0.61, "refresh": 30}, 3),
            ({"annealing": 1.0, "refresh": 1}, 100),
            ({"annealing": 1.0, "refresh": 100}, 1),
        ],
    )
    @pytest.mark.parametrize(("method", "each"), [("probed", 3), ("exact", 6), ("auto", 6)])
    def test_they_are_measured_anew_as_often_as_asked(self, change, measured, method, each):
        solver = ActivationDescent(steps=100, probes=3, normals=method, **change)
        result = fw.maximize(fw.Problem(self.NET, Output(0), self.SPACE), solver=solver, starts=2)
        assert result.evaluations.probe.tolist() == [2 * measured * each] * 3
        assert result.evaluations.backward.tolist() == [200] * 3

    def states(self, solver, **options) -> list[tuple[Tensor, list[Tensor]]]:
        seen = []

        class Spy(ActivationDescent):
            def move(self, task, state, *numbers):
                seen.append((state.x, state.norms))
                return super().move(task, state, *numbers)

        def spied(one: ActivationDescent) -> ActivationDescent:
            return Spy(**{field.name: getattr(one, field.name) for field in fields(one)})

        if isinstance(solver, Recombination):
            solver = replace(solver, first=spied(solver.first), inner=spied(solver.inner))
        else:
            solver = spied(solver)
        fw.maximize(fw.Problem(self.NET, Output(0), self.SPACE), solver=solver, **options)
        return seen

    def norms_by_hand(self, x: Tensor) -> list[Tensor]:
        """Of the pattern at `x`, in units of half the diagonal of the cube."""
        unit = 0.5 * 6**0.5
        first, second = self.NET[0].weight.detach(), self.NET[2].weight.detach()
        live = (self.NET[0](x) > 0).double()
        at_first = (unit * first).norm(dim=1).expand(len(x), -1)
        at_second = torch.stack(
            [(unit * second @ torch.diag(on) @ first).norm(dim=1) for on in live]
        )
        return [at_first, at_second]

    def test_they_are_those_of_the_point_where_they_are_measured(self):
        solver = ActivationDescent(steps=20, refresh=6, annealing=1.0, normals="exact")
        seen = self.states(solver, starts=2)
        for t, (_, norms) in enumerate(seen):
            for found, expected in zip(norms, self.norms_by_hand(seen[t - t % 6][0]), strict=True):
                torch.testing.assert_close(found, expected)

    def test_probes_are_near_and_new_each_time(self):
        solver = ActivationDescent(steps=20, refresh=6, annealing=1.0, probes=400, step_size=1e-9)
        seen = self.states(solver)
        right = self.norms_by_hand(seen[0][0])
        for _, norms in seen:
            for found, expected in zip(norms, right, strict=True):
                assert (found / expected - 1).abs().max() < 0.2
        assert not torch.equal(seen[0][1][0], seen[6][1][0])
        assert torch.equal(seen[0][1][0], seen[5][1][0])

    def test_members_of_a_population_share_those_of_the_first(self, monkeypatch):
        rows = []
        measure = normals.probed
        monkeypatch.setattr(
            normals, "probed", lambda sites, x, *rest: rows.append(x) or measure(sites, x, *rest)
        )
        inner = ActivationDescent(steps=6, refresh=3, annealing=1.0)
        solver = Recombination(population=4, generations=2, first=inner, inner=inner)
        seen = self.states(solver)
        assert [len(x) for x in rows] == [3] * 4
        assert torch.equal(rows[0], seen[0][0][::4])
        for _, norms in seen:
            for norm in norms:
                assert torch.equal(norm, norm[::4].repeat_interleave(4, 0))
        assert not torch.equal(seen[0][1][1][0], seen[0][1][1][4])

    def measured(self, solver: Recombination, **options) -> int:
        """How often norms are measured, each time by six passes of a whole population."""
        problem = fw.Problem(self.NET, Output(0), self.SPACE)
        probes = fw.maximize(problem, solver=solver, **options).evaluations.probe
        assert probes.tolist() == [probes[0].item()] * 3
        times, rest = divmod(probes[0].item(), 6)
        assert rest == 0
        return times

    def test_their_cost_is_shared_too(self):
        inner = ActivationDescent(steps=4, normals="exact", refresh=4)
        solver = Recombination(population=3, generations=2, first=inner, inner=inner)
        assert self.measured(solver) == 2

    @pytest.mark.parametrize(
        ("first", "inner", "generations", "epochs", "refresh", "at"),
        [
            (4, 4, 6, 1, 100, [0]),
            (10, 10, 6, 1, 20, [0, 20, 40]),
            (10, 10, 6, 1, 25, [0, 30, 50]),
            (10, 10, 6, 1, 10, [0, 10, 20, 30, 40, 50]),
            (10, 10, 6, 1, 1000, [0]),
            (25, 10, 4, 1, 20, [0, 25, 45]),
            (8, 8, 4, 1, 9, [0, 16, 24]),
            (10, 10, 3, 2, 30, [0, 30]),
            (10, 10, 3, 3, 40, [0, 40, 80]),
            (8, 10, 4, 1, 9, [0, 18, 28]),
            (30, 5, 5, 1, 25, [0, 30]),
            (2, 20, 3, 1, 15, [0, 22]),
        ],
    )
    def test_they_serve_later_rounds_until_so_many_steps_are_over(
        self, first, inner, generations, epochs, refresh, at
    ):
        begun = []

        class Spy(ActivationDescent):
            def prepare(self, task, state, t):
                begun.extend([state.norms] if t == 0 else [])
                return super().prepare(task, state, t)

        settings = {"normals": "exact", "refresh": refresh}
        solver = Recombination(
            population=2,
            generations=generations,
            epochs=epochs,
            first=Spy(steps=first, **settings),
            inner=Spy(steps=inner, step_size=0.5, **settings),
        )
        assert self.measured(solver) == len(at)
        taken = 0
        for number, steps in enumerate(one.steps for one in solver.rounds):
            if number:
                same = all(map(torch.equal, begun[number], begun[number - 1]))
                assert same == (taken not in at)
            taken += steps

    def test_within_a_round_they_are_measured_as_ever(self):
        inner = ActivationDescent(steps=10, normals="exact", refresh=4, annealing=1.0)
        solver = Recombination(population=3, generations=3, first=inner, inner=inner)
        assert self.measured(solver) == 3 * 3

    @pytest.mark.parametrize("epochs", [1, 3])
    def test_after_a_round_of_another_solver_they_are_measured_again(self, epochs):
        descent = ActivationDescent(steps=4, normals="exact")
        signs_first = Recombination(
            population=2, generations=4, epochs=epochs, first=Sign(steps=4), inner=descent
        )
        assert self.measured(signs_first) == epochs
        signs_between = replace(signs_first, first=descent, inner=Sign(steps=4))
        assert self.measured(signs_between) == epochs
        assert self.measured(replace(signs_between, finish=descent)) == epochs + 1

    @pytest.mark.parametrize("epochs", [1, 3])
    @pytest.mark.parametrize("refresh", [4, 9, 1000])
    def test_after_exact_generations_they_are_measured_as_after_signs(self, epochs, refresh):
        descent = ActivationDescent(steps=4, step_size=0.3, width=0.5, annealing=1.0)
        descent = replace(descent, refresh=refresh)
        found = [
            fw.maximize(
                fw.Problem(self.NET, Output(0), self.SPACE),
                solver=Recombination(
                    population=2, generations=4, epochs=epochs, first=first, inner=descent
                ),
            )
            for first in (replace(descent, width=0.0, step_size=2.0), Sign(steps=4))
        ]
        assert torch.equal(*(result.x for result in found))
        assert torch.equal(*(result.evaluations.probe for result in found))
        assert found[0].evaluations.probe.min() > 0

    @pytest.mark.parametrize("refresh", [12, 20, 1000])
    @pytest.mark.parametrize("method", ["probed", "exact"])
    def test_they_stay_with_their_rows_when_others_leave(self, refresh, method):
        net = random_network((6, 15, 12, 4), 4).double()
        centers = torch.rand(9, 6, generator=torch.Generator().manual_seed(1)).double() - 0.5
        space, objective = fw.LinfBall(centers, eps=0.5), CrossEntropy(torch.arange(9) % 4)
        inner = ActivationDescent(
            steps=12, step_size=0.05, width=0.3, annealing=1.0, refresh=refresh, normals=method
        )
        solver = Recombination(population=3, generations=4, first=inner, inner=inner)
        problem, rows = fw.Problem(net, objective, space), []
        free = fw.maximize(problem, solver=solver, trace=True)
        early, late = free.trace.best[:, 8], free.trace.best[:, 40]
        threshold = torch.stack([early, late, late + 100], 1)[range(9), [0, 1, 2] * 3] - 1e-9
        together = fw.maximize(
            problem,
            solver=solver,
            stop_at=threshold,
            callback=lambda step: rows.append(len(step.x)),
        )
        assert [rows[0], rows[12], rows[-1]] == [27, 18, 9]
        for b in range(9):
            row = torch.tensor([b])
            one = fw.Problem(net, objective.select(row), space.select(row))
            alone = fw.maximize(one, solver=solver, stop_at=threshold[row], seed=b)
            torch.testing.assert_close(alone.x[0], together.x[b], rtol=1e-8, atol=1e-9)
            assert alone.evaluations.probe.item() == together.evaluations.probe[b].item()


def test_they_lie_in_memory_as_the_activations_do():
    net = nn.Sequential(nn.Conv2d(2, 5, 3), nn.ReLU(), nn.Flatten(), nn.Linear(180, 3)).eval()
    space = fw.LinfBall(torch.rand(2, 2, 8, 8), eps=0.1)
    strides = []

    class Spy(ActivationDescent):
        def move(self, task, state, *numbers):
            strides.append(state.norms[0].stride())
            return super().move(task, state, *numbers)

    for form in (torch.contiguous_format, torch.channels_last):
        problem = fw.Problem(net.to(memory_format=form), Output(0), space)
        for width in (0.1, 0.0):
            fw.maximize(problem, solver=Spy(steps=1, width=width))
    assert strides == [(180, 36, 6, 1)] * 2 + [(180, 1, 30, 5)] * 2
