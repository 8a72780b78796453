"""What members of a population climb, and by what they are judged."""

from typing import Any

import pytest
import torch
from populations import NET, spaces

import facetwalk as fw
from facetwalk import solvers
from facetwalk.objectives import (
    DLR,
    CrossEntropy,
    Guided,
    Margin,
    MixedLosses,
    MixedTargetedLosses,
    Output,
    TargetedCrossEntropy,
    TargetedMargin,
)
from facetwalk.solvers import ActivationDescent, AdrGd, Recombination, Sign


class TestWhatMembersClimb:
    """The objective decides who is an elite; members may climb alternatives."""

    def tasks(self, objective, **settings) -> tuple[list[Any], fw.Result]:
        seen = []

        class Spy(Sign):
            def init(self, task, x):
                seen.append(task.objective)
                return super().init(task, x)

        inner = Spy(steps=6)
        solver = Recombination(population=40, generations=2, first=inner, inner=inner, **settings)
        count = objective.count
        problem = fw.Problem(NET, objective, spaces(count)["linf"])
        return seen, fw.maximize(problem, solver=solver)

    @pytest.mark.parametrize("kind", [Margin, CrossEntropy, DLR])
    def test_different_losses_for_classifiers(self, kind):
        objectives, result = self.tasks(kind(torch.tensor([0, 1, 2])))
        labels = torch.tensor([0, 1, 2]).repeat_interleave(40)
        for seen in objectives:
            assert isinstance(seen, Guided)
            assert isinstance(seen.score, kind)
            assert isinstance(seen.guide, MixedLosses)
            assert torch.equal(seen.guide.labels, labels)
            assert torch.equal(seen.score.labels, labels)
            assert set(seen.guide.kind.tolist()) == {0, 1, 2}
            assert (seen.guide.targets != labels).all()
        climbed = [torch.stack([seen.guide.kind, seen.guide.targets]) for seen in objectives]
        assert not torch.equal(*climbed)
        torch.testing.assert_close(
            result.value, kind(torch.tensor([0, 1, 2]))(NET(result.x)).detach()
        )

    @pytest.mark.parametrize("kind", [TargetedMargin, TargetedCrossEntropy])
    def test_different_losses_towards_targets(self, kind):
        objectives, _ = self.tasks(kind(torch.tensor([0, 1, 2])))
        for seen in objectives:
            assert isinstance(seen.guide, MixedTargetedLosses)
            assert torch.equal(seen.guide.labels, torch.tensor([0, 1, 2]).repeat_interleave(40))
            assert set(seen.guide.kind.tolist()) == {0, 1}

    @pytest.mark.parametrize("population", [1, 4, 5])
    @pytest.mark.parametrize("kind", [Margin, TargetedMargin])
    def test_turns_go_on_from_member_to_member_and_from_round_to_round(self, population, kind):
        """Kinds repeat after four turns; single classes by rank: 1, 2, 0, 1, 2, 0, ..."""
        begun = []

        class Spy(Sign):
            def init(self, task, x):
                begun.append((task.objective.guide, x))
                return super().init(task, x)

        solver = Recombination(
            population=population, generations=3, epochs=3, first=Spy(steps=2), inner=Spy(steps=2)
        )
        labels = torch.tensor([0, 1, 2])
        problem = fw.Problem(NET, kind(labels), spaces(3)["linf"])
        fw.maximize(problem, solver=solver, starts=2, batch_size=4 * population)
        assert len(begun) == 2 * 9
        one_class = [1, 2, 0]
        for chunk, families in enumerate(([0, 0, 1, 1], [2, 2])):
            turn = ones = 0
            for guide, x in begun[9 * chunk : 9 * (chunk + 1)]:
                kinds, leaders = guide.kind.unflatten(0, (-1, population)), x[::population]
                logits = NET(leaders).tolist()
                for m in range(population):
                    expected = [0, 1, 2, 2] if kind is Margin else [0, 1]
                    now = expected[turn % len(expected)]
                    assert kinds[:, m].tolist() == [now] * len(families)
                    for row, (b, z) in enumerate(zip(families, logits, strict=True)):
                        if now == 2:
                            others = sorted({0, 1, 2, 3} - {b}, key=lambda c, z=z: -z[c])
                            target = guide.targets[row * population + m].item()
                            assert target == others[one_class[ones % 3]]
                    ones += now == 2
                    turn += 1

    def test_turns_stay_with_their_members_when_others_leave(self):
        kinds = []

        class Spy(Sign):
            def init(self, task, x):
                kinds.append(task.objective.guide.kind.unflatten(0, (-1, 3)))
                return super().init(task, x)

        solver = Recombination(
            population=3, generations=5, first=Spy(steps=6), inner=Spy(steps=6, step_size=0.3)
        )
        problem = fw.Problem(NET, Margin(torch.arange(8) % 4), spaces(8)["linf"])
        median = fw.maximize(problem, solver=solver).value.median().item() - 1e-9
        kinds.clear()
        fw.maximize(problem, solver=solver, stop_at=median)
        assert 0 < len(kinds[-1]) < len(kinds[0]) == 8
        for number, seen in enumerate(kinds):
            expected = [[0, 1, 2], [2, 0, 1], [2, 2, 0], [1, 2, 2]][number % 4]
            assert seen.tolist() == [expected] * len(seen)

    def test_the_last_rounds_climb_the_objective_itself(self):
        seen = []

        class Spy(Sign):
            def init(self, task, x):
                seen.append(type(task.objective))
                return super().init(task, x)

        spy = Spy(steps=3)
        solver = Recombination(
            population=3, generations=2, first=spy, inner=spy, polish=spy, finish=spy
        )
        fw.maximize(fw.Problem(NET, Margin(torch.tensor([0, 1])), spaces(2)["linf"]), solver=solver)
        assert seen == [Guided, Guided, Margin, Margin]

    def test_not_where_it_is_switched_off(self):
        objectives, _ = self.tasks(Margin(torch.tensor([0, 1])), mixed=False)
        assert all(isinstance(seen, Margin) for seen in objectives)

    def test_not_where_there_are_none(self):
        for objective in (Output(1), fw.objectives.Distance(torch.zeros(1, 4).double())):
            objectives, _ = self.tasks(objective)
            assert all(type(seen) is type(objective) for seen in objectives)

    def test_counted_is_one_pass_forward_more_in_a_generation(self):
        inner = Sign(steps=6)
        solver = Recombination(population=3, generations=2, first=inner, inner=inner)
        forward = [
            fw.maximize(
                fw.Problem(NET, objective, spaces(1)["linf"]), solver=solver
            ).evaluations.forward.item()
            for objective in (Margin(torch.tensor([0])), Output(0))
        ]
        assert forward == [3 * 2 * (6 + 1 + 1) + 1, 3 * 2 * (6 + 1) + 1]

    def test_what_the_user_said_is_climbed(self):
        guided = Guided(Output(0), Output(1, sign=-1))
        objectives, _ = self.tasks(guided)
        for seen in objectives:
            assert isinstance(seen, Guided)
            assert isinstance(seen.guide, Output)
            assert (seen.guide.index, seen.guide.sign) == (1, -1)

    @pytest.mark.parametrize(
        "solver",
        [
            Sign(steps=15),
            ActivationDescent(steps=15),
            solvers.Apgd(steps=15),
            solvers.Gd(steps=15),
            solvers.Adam(steps=15),
            solvers.PerturbedGd(steps=15),
            AdrGd(steps=15),
        ],
        ids=lambda solver: type(solver).__name__,
    )
    def test_walks_are_those_of_the_guide_and_values_those_of_the_score(self, solver):
        walks, space = [], spaces(3)["l2"]
        for objective in (Guided(Output(0), Output(1)), Output(1)):
            seen = []
            result = fw.maximize(
                fw.Problem(NET, objective, space),
                solver=solver,
                starts=2,
                callback=lambda step, seen=seen: seen.append((step.x, step.value)),
            )
            walks.append((seen, result))
        (guided, result), (plain, _) = walks
        best = torch.full((3,), -torch.inf, dtype=torch.float64)
        for (x, value), (same, _) in zip(guided, plain, strict=True):
            torch.testing.assert_close(x, same)
            torch.testing.assert_close(value, NET(x)[:, 0].detach())
            best = torch.maximum(best, value.reshape(3, 2).amax(1))
        assert (result.value >= best - 1e-9).all()
        torch.testing.assert_close(result.value, NET(result.x)[:, 0].detach())
