"""Who is an elite: the best of each walk, and of all generations."""

import torch
from populations import NET, spaces
from torch import Tensor

import facetwalk as fw
from facetwalk.objectives import Output
from facetwalk.solvers import Recombination, Sign


def test_elites_are_the_best_of_all_generations():
    history: list[tuple[Tensor, Tensor]] = []
    checked = []

    class Spy(Recombination):
        def learn(self, memory, rows, number):
            history.append(
                (rows.best_x.unflatten(0, (-1, 5)).clone(), rows.best.unflatten(0, (-1, 5)))
            )
            learned = super().learn(memory, rows, number)
            elites = learned.elites
            everyone = torch.cat([x for x, _ in history], 1)
            value = torch.cat([value for _, value in history], 1)
            for b in range(3):
                order = sorted(range(len(value[b])), key=lambda i: -value[b, i].item())[:7]
                assert torch.equal(elites.value[b], value[b, order])
                assert torch.equal(elites.x[b], everyone[b, order])
                objective = NET(elites.x[b])[:, 0]
                torch.testing.assert_close(elites.value[b], objective.detach())
                checked.append(len(order))
            return learned

    problem = fw.Problem(NET, Output(0), spaces(3)["linf"])
    solver = Spy(
        population=5,
        generations=4,
        elites=7,
        first=Sign(steps=4, step_size=0.3),
        inner=Sign(steps=3, step_size=0.2),
    )
    result = fw.maximize(problem, solver=solver)
    assert checked == [5] * 3 + [7] * 9
    best = torch.cat([value for _, value in history], 1).amax(1)
    torch.testing.assert_close(result.value, best)


def test_what_a_generation_gives_is_the_best_of_each_members_walk():
    seen, learned = [], []

    class Spy(Recombination):
        def learn(self, memory, rows, number):
            learned.append(rows.best.clone())
            return super().learn(memory, rows, number)

    inner = Sign(steps=6, step_size=0.5, decay="constant")
    fw.maximize(
        fw.Problem(NET, Output(0), spaces(2)["linf"]),
        solver=Spy(population=3, generations=3, first=inner, inner=inner),
        callback=lambda step: seen.append((step.value, step.best)),
    )
    assert len(seen) == 18
    for g in range(3):
        values = torch.stack([value for value, _ in seen[6 * g : 6 * (g + 1)]])
        running = torch.stack([best for _, best in seen[6 * g : 6 * (g + 1)]])
        assert torch.equal(running, values.cummax(0).values)
        assert (learned[g] >= running[-1]).all()
