"""Activation descent: optima behind dead neurons, its schedule, its norms, its units."""

from dataclasses import fields, replace

import pytest
import torch
from torch import Tensor, nn

import facetwalk as fw
from facetwalk import normals
from facetwalk.objectives import CrossEntropy, Output
from facetwalk.solvers import ActivationDescent, Recombination, Sign
from facetwalk.zoo import StackedNetworks, random_network


def one_layer(weight: list[list[float]], bias: list[float], out: list[float], slope: list[float]):
    """`out . max(weight x + bias, 0) + slope . x`: the slope by two neurons that are always on."""
    neurons = len(bias) + 2
    net = nn.Sequential(nn.Linear(len(slope), neurons), nn.ReLU(), nn.Linear(neurons, 1))
    on = [slope, [-s for s in slope]]
    net[0].weight.data = torch.tensor(weight + on)
    net[0].bias.data = torch.tensor([*bias, 50.0, 50.0])
    net[2].weight.data = torch.tensor([[*out, 0.5, -0.5]])
    net[2].bias.data = torch.zeros(1)
    return net.double().eval()


def from_zero(net: nn.Module, space: fw.Space, solver) -> fw.Result:
    zero = torch.zeros(1, *space.shape)
    return fw.maximize(fw.Problem(net, Output(0), space), solver=solver, x0=zero)


DESCENT = ActivationDescent(steps=50, width=0.4)


class TestBehindDeadNeurons:
    def test_a_plateau_in_one_dimension(self):
        net = one_layer([[1.0]], [-0.5], [1.0], [0.0])  # max(x - 0.5, 0)
        space = fw.Box(-1, 1, shape=(1,))
        stuck = from_zero(net, space, Sign(steps=50))
        assert (stuck.x.item(), stuck.value.item()) == (0, 0)
        found = from_zero(net, space, DESCENT)
        assert (found.x.item(), found.value.item()) == (1, 0.5)

    def test_a_slope_that_leads_away(self):
        net = one_layer([[1.0]], [-0.3], [3.0], [-0.2])  # 3 max(x - 0.3, 0) - 0.2 x
        space = fw.Box(-1, 1, shape=(1,))
        assert from_zero(net, space, Sign(steps=50)).value.item() == pytest.approx(0.2)
        found = from_zero(net, space, DESCENT)
        assert found.value.item() == pytest.approx(3 * 0.7 - 0.2)

    def test_two_dimensions_with_one_neuron_each(self):
        net = one_layer([[2.0, 0.0], [0.0, -3.0]], [-1.0, -1.5], [1.0, 2.0], [-0.1, 0.1])
        space = fw.Box(-1, 1, shape=(2,))
        assert from_zero(net, space, Sign(steps=50)).value.item() == pytest.approx(0.2)
        found = from_zero(net, space, DESCENT)
        assert found.x.tolist() == [[1, -1]]
        assert found.value.item() == pytest.approx(1 + 2 * 1.5 - 0.2)

    @pytest.mark.parametrize(
        ("ball", "best"), [(fw.LinfBall, 7.0), (fw.L2Ball, 5.0), (fw.L1Ball, 4.0)]
    )
    def test_every_ball(self, ball, best):
        """The maximum of `max(w . x - 1, 0)` is the dual norm of w, less 1."""
        net = one_layer([[3.0, -4.0, 0.0]], [-1.0], [1.0], [0.0, 0.0, 0.0])
        space = ball(torch.zeros(1, 3), eps=1.0)
        assert from_zero(net, space, Sign(steps=100)).value.item() == 0
        found = from_zero(net, space, replace(DESCENT, steps=100))
        assert found.value.item() == pytest.approx(best - 1, abs=1e-6)

    def test_a_neuron_behind_another(self):
        """`max(max(x - 0.2, 0) - 0.3, 0)`: both are off at zero."""
        net = nn.Sequential(nn.Linear(1, 1), nn.ReLU(), nn.Linear(1, 1), nn.ReLU()).double().eval()
        for layer, bias in ((net[0], -0.2), (net[2], -0.3)):
            layer.weight.data.fill_(1.0)
            layer.bias.data.fill_(bias)
        space = fw.Box(-1, 1, shape=(1,))
        assert from_zero(net, space, Sign(steps=50)).value.item() == 0
        dead = from_zero(net, space, DESCENT)
        assert dead.value.item() == 0, "with its own input off, a neuron has no normal"
        near = torch.full((1, 1), 0.3)
        problem = fw.Problem(net, Output(0), space)
        assert fw.maximize(problem, solver=Sign(steps=50), x0=near).value.item() == 0
        found = fw.maximize(problem, solver=DESCENT, x0=near)
        assert found.value.item() == pytest.approx(0.5)


class TestSteps:
    """One hidden layer, whose normals are the rows of its matrix."""

    STEPS, ANNEALING, WIDTH = 20, 0.4, 0.6

    def solver(self) -> ActivationDescent:
        return ActivationDescent(
            steps=self.STEPS,
            annealing=self.ANNEALING,
            width=self.WIDTH,
            step_size=0.4,
            normals="exact",
        )

    def walk(self, space: fw.Space, net: nn.Sequential, solver) -> list[Tensor]:
        points = []
        fw.maximize(
            fw.Problem(net, Output(0), space),
            solver=solver,
            callback=lambda step: points.append(step.x),
        )
        return points

    def test_they_are_those_of_the_formula(self):
        net = random_network((5, 40, 1), 2).double()
        generator = torch.Generator().manual_seed(0)
        low = -torch.rand(3, 5, generator=generator, dtype=torch.float64) - 0.1
        high = torch.rand(3, 5, generator=generator, dtype=torch.float64) + 0.1
        space = fw.Box(low, high, shape=(5,))
        points = self.walk(space, net, self.solver())
        w, bias, out = net[0].weight.detach(), net[0].bias.detach(), net[2].weight.detach()
        half = (high - low) / 2
        norms = (w[None] * half[:, None]).square().sum(2).sqrt() * 5**0.5
        x, leaks = (low + high) / 2, 0
        for t, point in enumerate(points):
            torch.testing.assert_close(point, x)
            h = x @ w.T + bias
            width = self.WIDTH * (1 - t / (self.ANNEALING * self.STEPS))
            kernel = (h > 0).double()
            if width > 0:
                kernel = torch.where(h > 0, 1.0, torch.exp(h.clamp(max=0) / (width * norms)))
                leaks += 1
            gradient = (kernel * out) @ w
            size = 0.4 * (1 - t / self.STEPS)
            x = (x + size * half * gradient.sign()).clamp(low, high)
        assert leaks == 8

    def test_after_annealing_they_are_signs(self):
        net = random_network((5, 40, 30, 1), 2).double()
        space = fw.L2Ball(torch.zeros(3, 5, dtype=torch.float64), torch.tensor([0.5, 1.0, 2.0]))
        solver = self.solver()
        points = self.walk(space, net, solver)
        exact = int(self.ANNEALING * self.STEPS)
        differs = False
        for t in range(self.STEPS - 1):
            leaf = points[t].clone().requires_grad_()
            (gradient,) = torch.autograd.grad(net(leaf).sum(), leaf)
            step = solver.step_size * (1 - t / self.STEPS) * space.ascent(gradient)
            same = torch.allclose(points[t + 1], space.project(points[t] + step), atol=1e-12)
            assert same or t < exact
            differs |= not same
        assert differs

    def test_a_tiny_width_is_plain_sign_ascent(self):
        net = random_network((5, 40, 30, 1), 2).double()
        space = fw.Box(-1, 1, shape=(5,))
        thin = replace(self.solver(), width=1e-12)
        plain = Sign(steps=self.STEPS, step_size=0.4)
        for a, b in zip(self.walk(space, net, thin), self.walk(space, net, plain), strict=True):
            torch.testing.assert_close(a, b)

    @pytest.mark.parametrize("momentum", [0.0, 0.8])
    def test_momentum_is_that_of_sign(self, momentum):
        net = random_network((5, 40, 30, 1), 2).double()
        space = fw.Box(-1, 1, shape=(5,))
        thin = replace(self.solver(), width=1e-12, momentum=momentum)
        plain = Sign(steps=self.STEPS, step_size=0.4, momentum=momentum)
        same = self.walk(space, net, thin)[-1], self.walk(space, net, plain)[-1]
        torch.testing.assert_close(*same)


@pytest.mark.parametrize(
    ("solver", "expected"),
    [
        (
            ActivationDescent(steps=4, step_size=2.0, width=0.4, annealing=0.5),
            [(2.0, 0.4), (1.5, 0.2), (1.0,), (0.5,)],
        ),
        (
            ActivationDescent(steps=4, step_size=1.0, width=0.8, annealing=1.0, decay="constant"),
            [(1.0, 0.8), (1.0, 0.6), (1.0, 0.4), (1.0, 0.2)],
        ),
        (
            ActivationDescent(steps=5, step_size=1.0, width=1.0, annealing=0.3),
            [(1.0, 1.0), (0.8, 1 / 3), (0.6,), (0.4,), (0.2,)],
        ),
        (ActivationDescent(steps=1, step_size=1.0, width=0.1, annealing=0.01), [(1.0, 0.1)]),
    ],
)
def test_numbers_are_the_step_and_the_width(solver, expected):
    found = [solver.numbers(t) for t in range(solver.steps)]
    assert [len(numbers) for numbers in found] == [len(numbers) for numbers in expected]
    for numbers, right in zip(found, expected, strict=True):
        assert numbers == pytest.approx(right)


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


def scaled_inputs(net: nn.Sequential, factor: Tensor) -> nn.Sequential:
    """The network that gives on `factor * x` what `net` gives on `x`."""
    copy = nn.Sequential(nn.Linear(*net[0].weight.shape[::-1]), *list(net)[1:]).double().eval()
    copy[0].weight.data = net[0].weight.detach() / factor
    copy[0].bias.data = net[0].bias.detach()
    return copy


def in_units(kind: str, factor: Tensor, count: int) -> fw.Space:
    generator = torch.Generator().manual_seed(3)
    centers = torch.rand(count, 6, generator=generator, dtype=torch.float64) - 0.5
    eps = torch.linspace(0.5, 1, count, dtype=torch.float64)
    if kind == "box":
        return fw.Box((centers - 1) * factor, (centers + 0.7) * factor, shape=(6,))
    assert len(set(factor.tolist())) == 1
    ball = {"linf": fw.LinfBall, "l2": fw.L2Ball, "l1": fw.L1Ball}[kind]
    return ball(centers * factor, eps * factor[0])


EACH_ITS_OWN = torch.tensor([2.0**-10, 1.0, 2.0**10, 4.0, 2.0**-3, 2.0**20]).double()


@pytest.mark.parametrize("normals_method", ["probed", "exact"])
@pytest.mark.parametrize(
    ("kind", "factor"),
    [
        ("box", torch.full((6,), 1000.0).double()),
        ("box", torch.full((6,), 1 / 255).double()),
        ("box", EACH_ITS_OWN),
        ("linf", torch.full((6,), 1000.0).double()),
        ("l2", torch.full((6,), 1000.0).double()),
        ("l1", torch.full((6,), 1e-3).double()),
    ],
    ids=["box x 1000", "box / 255", "box, anisotropic", "linf", "l2", "l1"],
)
def test_the_unit_of_the_inputs_does_not_matter(kind, factor, normals_method):
    net = random_network((6, 20, 15, 4), 1).double()
    objective = CrossEntropy(torch.arange(5) % 4)
    solver = ActivationDescent(steps=40, normals=normals_method, width=1.0, annealing=0.8)
    results = []
    for unit in (torch.ones(6, dtype=torch.float64), factor):
        problem = fw.Problem(scaled_inputs(net, unit), objective, in_units(kind, unit, 5))
        results.append(fw.maximize(problem, solver=solver, starts=3, seed=2))
    torch.testing.assert_close(results[1].value, results[0].value, rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(results[1].x / factor, results[0].x, rtol=1e-6, atol=1e-9)
    plain = fw.maximize(
        fw.Problem(net, objective, in_units(kind, torch.ones(6).double(), 5)),
        solver=Sign(steps=40),
        starts=3,
        seed=2,
    )
    assert not torch.allclose(plain.x, results[0].x)


def test_a_network_for_each_problem_is_what_they_are_alone():
    nets = [random_network((4, 12, 10, 1), seed).double() for seed in range(6)]
    space, solver = fw.Box(-1, 1, shape=(4,)), ActivationDescent(steps=30)
    together = fw.maximize(
        fw.Problem(StackedNetworks(nets), Output(0), space), solver=solver, starts=3
    )
    for i, net in enumerate(nets):
        alone = fw.maximize(fw.Problem(net, Output(0), space), solver=solver, starts=3, seed=i)
        torch.testing.assert_close(alone.x[0], together.x[i])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.Linear(6, 3), "no ReLU was found"),
        (lambda: nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 3)), "such as Sign"),
        (
            lambda: torch.jit.script(nn.Sequential(nn.Linear(6, 3), nn.ReLU()).eval()),
            "TorchScript",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_models_without_relus_get_a_clear_sentence(make, message):
    problem = fw.Problem(make().eval(), Output(0), fw.Box(-1, 1, shape=(6,)))
    with pytest.raises(fw.ModelError, match=message):
        fw.maximize(problem, solver=ActivationDescent(steps=3))


def test_networks_that_are_not_affine_work_without_a_warning():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = nn.Sequential(
            nn.Conv1d(1, 4, 3), nn.ReLU(), nn.MaxPool1d(2), nn.Flatten(), nn.Linear(8, 3), nn.ReLU()
        ).eval()
    problem = fw.Problem(net, Output(0), fw.Box(-3, 3, shape=(1, 6)))
    result = fw.maximize(problem, solver=ActivationDescent(steps=40), starts=4)
    plain = fw.maximize(problem, solver=Sign(steps=40), starts=4)
    assert result.value >= plain.value - 1e-3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"width": 0.0}, "ActivationDescent.width must be positive; it is 0.0"),
        ({"probes": 0}, "ActivationDescent.probes must be positive"),
        ({"refresh": 0}, "ActivationDescent.refresh must be positive"),
        ({"annealing": 0.0}, r"annealing must be a share in \(0, 1\]; it is 0.0"),
        ({"annealing": 1.5}, "annealing must be a share"),
        ({"normals": "guess"}, "normals must be one of auto, exact, probed"),
        ({"step_size": -1.0}, "ActivationDescent.step_size must be positive"),
        ({"steps": 0}, "steps must be at least 1"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(fw.InputError, match=message):
        ActivationDescent(**settings)
