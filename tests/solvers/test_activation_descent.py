"""Activation descent: its steps, its schedule, the models that it takes."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

import facetwalk as fw
from facetwalk.objectives import CrossEntropy, Output
from facetwalk.solvers import ActivationDescent, Sign
from facetwalk.zoo import StackedNetworks, random_network


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
            [(2.0, 0.0, 0.4), (1.5, 0.0, 0.2), (1.0, 0.0), (0.5, 0.0)],
        ),
        (
            ActivationDescent(steps=4, step_size=1.0, width=0.8, annealing=1.0, decay="constant"),
            [(1.0, 0.0, 0.8), (1.0, 0.0, 0.6), (1.0, 0.0, 0.4), (1.0, 0.0, 0.2)],
        ),
        (
            ActivationDescent(steps=5, step_size=1.0, width=1.0, annealing=0.3, momentum=0.7),
            [(1.0, 0.7, 1.0), (0.8, 0.7, 1 / 3), (0.6, 0.7), (0.4, 0.7), (0.2, 0.7)],
        ),
        (ActivationDescent(steps=1, step_size=1.0, width=0.1, annealing=0.01), [(1.0, 0.0, 0.1)]),
        (ActivationDescent(steps=2, step_size=1.0, width=0.0), [(1.0, 0.0), (0.5, 0.0)]),
    ],
)
def test_numbers_are_the_step_the_momentum_and_the_width(solver, expected):
    found = [solver.numbers(t) for t in range(solver.steps)]
    assert [len(numbers) for numbers in found] == [len(numbers) for numbers in expected]
    for numbers, right in zip(found, expected, strict=True):
        assert numbers == pytest.approx(right)


@pytest.mark.parametrize("momentum", [0.0, 0.8])
@pytest.mark.parametrize("kind", ["linf", "l2"])
def test_without_a_kernel_it_is_sign_and_measures_nothing(kind, momentum):
    net, space = random_network((5, 40, 30, 4), 2), fw.LinfBall(torch.rand(6, 5), eps=0.3)
    if kind == "l2":
        space = fw.L2Ball(space.center, eps=0.5)
    problem = fw.Problem(net, CrossEntropy(torch.arange(6) % 4), space)
    exact, plain = (
        fw.maximize(problem, solver=solver, starts=2)
        for solver in (
            ActivationDescent(steps=120, width=0.0, momentum=momentum),
            Sign(steps=120, momentum=momentum),
        )
    )
    assert torch.equal(exact.x, plain.x)
    assert torch.equal(exact.value, plain.value)
    for name in ("forward", "backward", "probe"):
        assert torch.equal(*(getattr(each.evaluations, name) for each in (exact, plain)))


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
        ({"width": -0.1}, "ActivationDescent.width must be at least 0; it is -0.1"),
        ({"width": float("nan")}, "ActivationDescent.width must be a finite number; it is nan"),
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
