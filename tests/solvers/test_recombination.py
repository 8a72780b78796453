"""Populations: what children are made of, who is an elite, and what crossover is good for."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import pytest
import torch
from scipy.stats import kstest
from torch import Tensor, nn

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
from facetwalk.solvers import (
    ActivationDescent,
    AdrGd,
    Fgsm,
    Recombination,
    Sign,
    Solver,
)
from facetwalk.solvers.gd import Point
from facetwalk.zoo import StackedNetworks, random_network

NET = random_network((8, 20, 15, 4), 1).double()


def centers(count: int) -> Tensor:
    generator = torch.Generator().manual_seed(4)
    return torch.rand(count, 8, generator=generator, dtype=torch.float64)


def spaces(count: int) -> dict[str, fw.Space]:
    middle = centers(count)
    ball = fw.L2Ball(middle, torch.linspace(0.2, 0.8, count, dtype=torch.float64))
    return {
        "box": fw.Box(middle - 1, middle + 0.5, shape=(8,)),
        "linf": fw.LinfBall(middle, eps=0.3, bounds=(0, 1)),
        "l2": fw.L2Ball(middle, eps=0.5, bounds=(0, 1)),
        "l1": fw.L1Ball(middle, eps=0.5, bounds=(0, 1)),
        "intersection": fw.Intersection(ball, fw.L1Ball(middle + 0.01, eps=0.6)),
    }


@dataclass(frozen=True, kw_only=True)
class Still(Solver):
    """Does not move, so that a generation is seen as it was bred."""

    steps: int = 1

    def init(self, task: Any, x: Tensor) -> Point:
        return Point(x)

    def step(self, task: Any, state: Point, t: int) -> tuple[Point, Tensor]:
        return state, task.value(state.x)


def bred(space: fw.Space, objective=None, **settings) -> tuple[list[Tensor], list[Tensor], Any]:
    """Points and values of each generation, `(problems, population, ...)`, and the result."""
    solver = Recombination(first=Still(), inner=Still(), **settings)
    points, values = [], []

    def watch(step: fw.Step) -> None:
        points.append(step.x.unflatten(0, (-1, solver.population)))
        values.append(step.value.unflatten(0, (-1, solver.population)))

    problem = fw.Problem(NET, objective or Output(0), space)
    return points, values, fw.maximize(problem, solver=solver, callback=watch, seed=7)


class TestChildren:
    def test_each_coordinate_is_that_of_one_of_two_elites(self):
        settings = {"population": 12, "generations": 5, "elites": 4, "redrawn": 0}
        points, values, _ = bred(spaces(3)["box"], **settings)
        both = 0
        for g in range(1, 5):
            for b in range(3):
                value, x = (torch.cat([seen[b] for seen in s[:g]]) for s in (values, points))
                elites = x[value.argsort(descending=True)[:4]]
                for child in points[g][b]:
                    from_elite = child == elites
                    assert from_elite.any(0).all()
                    pairs = from_elite[:, None] | from_elite[None]
                    assert pairs.all(-1).any()
                    both += not from_elite.all(-1).any()
        assert both > 60  # of 144: only parents of different kinds make something new

    def test_parents_take_equal_shares_and_every_elite_is_one(self):
        settings = {"population": 400, "generations": 2, "elites": 3, "redrawn": 0}
        points, values, _ = bred(spaces(1)["box"], **settings)
        elites = points[0][0][values[0][0].argsort(descending=True)[:3]]
        shares = (points[1][0][:, None] == elites).double().mean((0, 2))
        assert shares.tolist() == pytest.approx([1 / 3] * 3, abs=0.06)

    @pytest.mark.parametrize("redrawn", [0.0, 0.2, 0.5, 0.8])
    def test_each_child_has_equal_shares_of_both_parents_in_what_is_not_redrawn(self, redrawn):
        """Of k coordinates kept, those of one parent are binomial: their variance is k / 4."""
        settings = {"population": 3000, "generations": 2, "elites": 2, "redrawn": redrawn}
        points, values, _ = bred(fw.Box(-1, 3, shape=(8,)), **settings)
        one, other = points[0][0][values[0][0].argsort(descending=True)[:2]]
        from_one, from_other = (points[1][0] == one).sum(1), (points[1][0] == other).sum(1)
        kept = from_one + from_other
        assert kept.double().mean().item() == pytest.approx(8 * (1 - redrawn), abs=0.2)
        some = kept > 0
        spread = (from_one - from_other)[some].square() / kept[some]
        assert spread.mean().item() == pytest.approx(1, abs=0.15)
        assert (from_one.sum() / kept.sum()).item() == pytest.approx(0.5, abs=0.02)

    def test_in_a_linf_ball_they_are_the_parents_up_to_rounding(self):
        settings = {"population": 12, "generations": 2, "elites": 12, "redrawn": 0}
        points, _, _ = bred(spaces(3)["linf"], **settings)
        distance = (points[1][:, :, None] - points[0][:, None]).abs().amin(2)
        assert distance.max() < 1e-15

    @pytest.mark.parametrize("kind", ["box", "linf", "l2", "l1", "intersection"])
    @pytest.mark.parametrize("redrawn", [0.0, 0.5])
    def test_they_lie_in_the_space(self, kind, redrawn):
        space = spaces(4)[kind]
        points, _, result = bred(
            space, population=6, generations=4, epochs=2, elites=3, redrawn=redrawn
        )
        for generation in points:
            for member in generation.unbind(1):
                assert space.contains(member).all()
        assert space.contains(result.x).all()

    def test_what_is_drawn_anew_is_uniform(self):
        points, _, _ = bred(fw.Box(-1, 3, shape=(8,)), population=300, generations=3, redrawn=1.0)
        for generation in points[1:]:
            drawn = generation.flatten().numpy()
            assert kstest((drawn + 1) / 4, "uniform").pvalue > 1e-3
        everything = torch.cat([generation[0] for generation in points])[1:]
        assert len(everything[:, 0].unique()) > 0.99 * len(everything)

    @pytest.mark.parametrize(
        ("share", "of_eight"), [(0.0, 0.0), (0.01, 1 / 8), (0.4, 0.4), (0.5, 0.5), (0.9, 0.9)]
    )
    def test_some_coordinates_are_drawn_anew(self, share, of_eight):
        points, _, _ = bred(fw.Box(-1, 3, shape=(8,)), population=500, generations=2, redrawn=share)
        old, new = points[0][0], points[1][0]
        drawn = ~(new[:, None] == old).any(1)
        assert drawn.double().mean().item() == pytest.approx(of_eight, abs=0.04)
        assert not drawn.all()
        if share:
            assert kstest((new[drawn].numpy() + 1) / 4, "uniform").pvalue > 1e-3

    def test_generations_and_members_differ(self):
        points, _, _ = bred(fw.Box(-1, 3, shape=(8,)), population=8, generations=4)
        everyone = torch.cat([generation[0] for generation in points])
        assert len(everyone.unique(dim=0)) > 24  # of 32: a child may have one parent twice

    def test_the_first_generation_starts_at_the_centre_and_random_points(self):
        space = spaces(3)["box"]
        points, _, result = bred(space, population=4, generations=2)
        assert torch.equal(points[0][:, 0], space.center)
        assert len(points[0].flatten(0, 1).unique(dim=0)) == 12
        torch.testing.assert_close(result.initial_value, NET(space.center)[:, 0].detach())


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


@pytest.mark.parametrize("name", solvers.BY_NAME)
def test_any_solver_can_improve_the_members(name):
    inner = Fgsm() if name == "fgsm" else solvers.BY_NAME[name](steps=8)
    solver = Recombination(population=3, generations=3, first=inner, inner=inner)
    objective = Margin(torch.arange(4) % 4)
    for kind in ("linf", "l2"):
        space = spaces(4)[kind]
        result = fw.maximize(fw.Problem(NET, objective, space), solver=solver, starts=2)
        assert space.contains(result.x).all()
        assert torch.equal(result.value, objective(NET(result.x)).detach())
        assert (result.value > result.initial_value).all()
        each = 2 * 3 * 3 * inner.steps * inner.gradients_per_step
        assert result.evaluations.backward.tolist() == [each] * 4
        assert solver.evaluations == each // 2


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


def tents(blocks: int) -> nn.Sequential:
    """A sum over inputs of a wide low tent around -0.5 and a narrow high one around 0.7.

    Alone, each input has its best, 1, at 0.7, and a local maximum of 0.5 at -0.5.
    """
    net = nn.Sequential(nn.Linear(blocks, 6 * blocks), nn.ReLU(), nn.Linear(6 * blocks, 1))
    net = net.double().eval()
    for parameter in net.parameters():
        parameter.data.zero_()
    for b in range(blocks):
        for i, (middle, reach, height) in enumerate([(-0.5, 0.9, 0.5), (0.7, 0.3, 1.0)]):
            for j, (knot, slope) in enumerate([(-reach, 1), (0, -2), (reach, 1)]):
                neuron = 6 * b + 3 * i + j
                net[0].weight.data[neuron, b] = 1
                net[0].bias.data[neuron] = -(middle + knot)
                net[2].weight.data[0, neuron] = slope * height / reach
    return net


class TestCrossover:
    BLOCKS, PROBLEMS = 8, 60
    INNER = Sign(steps=20, step_size=0.1)

    def problem(self) -> fw.Problem:
        low = -torch.ones(self.PROBLEMS, self.BLOCKS, dtype=torch.float64)
        return fw.Problem(tents(self.BLOCKS), Output(0), fw.Box(low, -low, shape=(self.BLOCKS,)))

    def solved(self, solver, starts: int) -> tuple[int, Tensor]:
        result = fw.maximize(self.problem(), solver=solver, starts=starts, x0="sample")
        return int((result.value > self.BLOCKS - 0.2).sum()), result.evaluations.backward

    def test_it_combines_what_members_found_apart(self):
        breeding = Recombination(
            population=30,
            generations=6,
            first=self.INNER,
            inner=self.INNER,
            elites=12,
            redrawn=0,
        )
        together, cost = self.solved(breeding, starts=1)
        apart, same = self.solved(self.INNER, starts=180)
        assert torch.equal(cost, same)
        assert cost.unique().tolist() == [3600]
        assert apart < 0.1 * self.PROBLEMS
        assert together > 0.8 * self.PROBLEMS


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
        assert not torch.equal(objectives[0].guide.kind, objectives[1].guide.kind)
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
        """Kinds repeat after six turns; single classes by rank: 1, 2, 0, 1, 2, 0, ..."""
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
                    expected = [0, 1, 0, 2, 0, 2] if kind is Margin else [0, 1]
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
            expected = [[0, 1, 0], [2, 0, 2]][number % 2]
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


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"population": 0}, "Recombination.population must be at least 1; it is 0"),
        ({"generations": 0}, "Recombination.generations must be at least 1"),
        ({"elites": 0}, "Recombination.elites must be at least 1"),
        ({"redrawn": 1.5}, r"Recombination.redrawn must be a share in \[0, 1\]; it is 1.5"),
        ({"redrawn": float("nan")}, "Recombination.redrawn must be a share"),
        ({"inner": Recombination()}, "Recombination.inner must be a solver of one round"),
        ({"first": solvers.Auto()}, "Recombination.first must be a solver of one round"),
        ({"first": None}, "Recombination.first must be a solver"),
        ({"polish": "adam"}, "Recombination.polish must be a solver .* it is 'adam'"),
        ({"finish": "adam"}, "Recombination.finish must be a solver .* it is 'adam'"),
        ({"finish": Recombination()}, "Recombination.finish must be a solver of one round"),
        ({"epochs": 0}, "Recombination.epochs must be at least 1; it is 0"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(fw.InputError, match=message):
        Recombination(**settings)


def test_it_is_a_frozen_value():
    solver = Recombination(population=3)
    copy = Recombination(**{field.name: getattr(solver, field.name) for field in fields(solver)})
    assert copy == solver
    assert hash(copy) == hash(solver)
    assert replace(solver, population=4) != solver
    assert "population=3" in repr(solver)
