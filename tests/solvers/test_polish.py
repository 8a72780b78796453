"""Last rounds of a population: where they begin, and what they gain."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from populations import NET, spaces
from torch import Tensor, nn

import facetwalk as fw
from facetwalk import solvers
from facetwalk.objectives import Margin, Output
from facetwalk.solvers import Recombination, Sign, Solver


@dataclass
class LastRounds:
    """Rounds of 4 steps in three generations, and last rounds of 5, of three problems."""

    starts: dict[int, Tensor]
    """Where the rows are at steps 13 and 18, in which last rounds begin."""
    found: list[tuple[Tensor, Tensor]]
    """The best points of the rows of each round, and their values."""
    memory: list[Any]
    """What was known after each round."""
    result: fw.Result


def last_rounds(population: int, elites: int, **last: Solver) -> LastRounds:
    starts, found, memory = {}, [], []

    class Spy(Recombination):
        def learn(self, known, rows, number):
            found.append(
                (
                    rows.best_x.unflatten(0, (3, population)).clone(),
                    rows.best.unflatten(0, (3, population)).clone(),
                )
            )
            memory.append(super().learn(known, rows, number))
            return memory[-1]

    def watch(step: fw.Step) -> None:
        if step.step in (13, 18):
            starts[step.step] = step.x.unflatten(0, (3, population))

    solver = Spy(
        population=population,
        generations=3,
        elites=elites,
        first=Sign(steps=4),
        inner=Sign(steps=4, step_size=0.3),
        **last,
    )
    problem = fw.Problem(NET, Margin(torch.tensor([0, 1, 2])), spaces(3)["linf"])
    return LastRounds(starts, found, memory, fw.maximize(problem, solver=solver, callback=watch))


sizes = pytest.mark.parametrize(("population", "elites"), [(4, 6), (4, 4), (5, 2)])


class TestPolish:
    """Last rounds in which the best points themselves are improved."""

    POLISH, FINISH = Sign(steps=5, step_size=0.3), Sign(steps=5, step_size=0.01)

    @sizes
    @pytest.mark.parametrize("name", ["polish", "finish"])
    def test_it_starts_from_the_elites_best_first(self, population, elites, name):
        rounds = last_rounds(population, elites, **{name: self.FINISH})
        x = rounds.memory[2].elites.x
        for i in range(population):
            assert torch.equal(rounds.starts[13][:, i], x[:, i % elites])
        assert list(rounds.starts) == [13]

    @pytest.mark.parametrize("last", [("polish",), ("finish",), ("polish", "finish")])
    def test_it_climbs_the_objective_itself(self, last):
        rounds = last_rounds(4, 4, **dict.fromkeys(last, self.FINISH))
        known = rounds.memory[2].elites.x[:, 0]
        result = rounds.result
        assert (result.value >= Margin(torch.tensor([0, 1, 2]))(NET(known))).all()
        assert result.solver.steps == 12 + 5 * len(last)
        assert len(result.solver.rounds) == 3 + len(last)
        assert result.evaluations.backward.tolist() == [4 * result.solver.steps] * 3

    @sizes
    def test_the_finish_starts_from_what_the_polish_made_of_them_best_first(
        self, population, elites
    ):
        rounds = last_rounds(population, elites, polish=self.POLISH, finish=self.FINISH)
        assert list(rounds.starts) == [13, 18]
        polished, value = rounds.found[3]
        moved = False
        for b in range(3):
            starts = rounds.starts[18][b]
            assert torch.equal(starts.unique(dim=0), polished[b].unique(dim=0))
            objective = Margin(torch.tensor([b]))(NET(starts)).detach()
            torch.testing.assert_close(objective, value[b].sort(descending=True).values)
            moved |= not torch.equal(rounds.starts[18][b], rounds.starts[13][b])
        assert moved

    @sizes
    def test_after_the_polish_what_it_made_is_all_that_is_known(self, population, elites):
        rounds = last_rounds(population, elites, polish=self.POLISH, finish=self.FINISH)
        for number in (3, 4):
            x, value = rounds.found[number]
            known = rounds.memory[number]
            assert known.elites.value.shape == (3, population)
            assert known.champions.value.shape == (3, 0)
            assert torch.equal(known.elites.value, value.sort(descending=True).values)
            for b in range(3):
                assert torch.equal(known.elites.x[b].unique(dim=0), x[b].unique(dim=0))
                objective = Margin(torch.tensor([b]))(NET(known.elites.x[b]))
                torch.testing.assert_close(known.elites.value[b], objective.detach())

    def test_nothing_is_lost_from_round_to_round(self):
        rounds = last_rounds(4, 6, polish=self.POLISH, finish=self.FINISH)
        best = torch.stack([value.amax(1) for _, value in rounds.found])
        known = [memory.elites.value[:, 0] for memory in rounds.memory]
        torch.testing.assert_close(torch.stack(known), best.cummax(0).values)
        torch.testing.assert_close(rounds.result.value, best[-1])
        assert (best[3:] >= best[2]).all()

    def test_digits_are_gained(self):
        """Of a concave function whose best value is zero, at a point that signs step over."""
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)).double().eval()
        eye, middle = torch.eye(4).double(), torch.tensor([0.123, -0.3, 0.4567, 0.7]).double()
        net[0].weight.data = torch.cat([eye, -eye])
        net[0].bias.data = torch.cat([-middle, middle])
        net[2].weight.data.fill_(-1.0)
        net[2].bias.data.zero_()
        plain = Recombination(
            population=3, generations=2, first=Sign(steps=20), inner=Sign(steps=20), mixed=False
        )
        polished = replace(plain, polish=solvers.Adam(steps=60, step_size=0.02))
        finished = replace(polished, finish=solvers.Adam(steps=60, step_size=0.002))
        problem = fw.Problem(net, Output(0), fw.Box(-1, 1, shape=(4,)))
        rough, fine, finest = (
            fw.maximize(problem, solver=s).value.item() for s in (plain, polished, finished)
        )
        assert rough < -0.005
        assert -0.002 < fine < finest <= 0
        assert finest > -0.0002
