"""Every solver in one table: against known optima, against single calls, against torch.optim."""

from dataclasses import FrozenInstanceError, fields, replace
from itertools import pairwise

import pytest
import torch
from torch import nn

import facetwalk as fw
from facetwalk import solvers
from facetwalk.solvers import (
    ActivationDescent,
    AdrGd,
    Apgd,
    Fgsm,
    Gd,
    PerturbedGd,
    Recombination,
    Sign,
)
from facetwalk.zoo import random_network

SOLVERS = {
    **{name: solver(steps=60) for name, solver in solvers.BY_NAME.items() if solver is not Fgsm},
    "fgsm": Fgsm(),
    "gd, raw": Gd(steps=60, normalization="none", step_size=0.05),
    "gd, l2": Gd(steps=60, normalization="l2"),
    "sign, constant": Sign(steps=60, decay="constant", step_size=0.1),
    "sign, cosine": Sign(steps=60, decay="cosine"),
    "sign, momentum": Sign(steps=60, momentum=0.9),
    "adr-gd, released": replace(AdrGd.preset("released"), steps=60),
    "adr-gd, released-attack": replace(AdrGd.preset("released-attack"), steps=60),
    "adr-gd, probed": AdrGd(steps=60, normals="probed", normals_every=7),
    "activation descent, exact": ActivationDescent(steps=60, normals="exact", refresh=7),
}
every_solver = pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
POPULATIONS = {
    "recombination": Recombination(
        population=3,
        generations=3,
        first=ActivationDescent(steps=5),
        inner=ActivationDescent(steps=5, step_size=0.5),
        redrawn=0.1,
        epochs=2,
    ),
    "recombination of signs, polished": Recombination(
        population=2,
        generations=2,
        first=Sign(steps=5),
        inner=Sign(steps=5),
        polish=solvers.Adam(steps=5),
        finish=solvers.Adam(steps=5, step_size=0.02),
    ),
}
every_method = pytest.mark.parametrize(
    "solver", [*SOLVERS.values(), *POPULATIONS.values()], ids=[*SOLVERS, *POPULATIONS]
)


def small_classifier(inputs=8, classes=4, seed=0) -> nn.Sequential:
    net = random_network((inputs, 12, 10, classes), seed).double()
    for parameter in net.parameters():
        parameter.data *= 0.3
    return net


def balls(count: int) -> dict[str, fw.Space]:
    generator = torch.Generator().manual_seed(4)
    centers = torch.rand(count, 8, generator=generator, dtype=torch.float64)
    eps = torch.linspace(0.1, 0.4, count, dtype=torch.float64)
    return {
        "linf": fw.LinfBall(centers, eps, bounds=(0, 1)),
        "l2": fw.L2Ball(centers, eps, bounds=(0, 1)),
        "l1": fw.L1Ball(centers, 3 * eps, bounds=(0, 1)),
        "box": fw.Box(centers - 1, centers + 0.5, shape=(8,)),
    }


@every_method
@pytest.mark.parametrize("kind", ["linf", "l2", "l1", "box"])
def test_batch_of_32_gives_what_32_single_calls_give(solver, kind):
    net, labels, space = small_classifier(), torch.arange(32) % 4, balls(32)[kind]
    if isinstance(solver, solvers.Solver) and solver.steps > 25:
        solver = replace(solver, steps=25)
    together = fw.maximize(
        fw.Problem(net, fw.objectives.CrossEntropy(labels), space), solver=solver, starts=2, seed=9
    )
    for i in range(32):
        row = torch.tensor([i])
        alone = fw.maximize(
            fw.Problem(net, fw.objectives.CrossEntropy(labels[row]), space.select(row)),
            solver=solver,
            starts=2,
            seed=9 + i,
        )
        assert torch.allclose(alone.value[0], together.value[i], atol=1e-5)
        assert torch.allclose(alone.x[0], together.x[i], atol=1e-5)


@every_solver
def test_linear_function_is_maximised_at_the_corner(solver):
    weight = torch.tensor([[1.0, -2.0, 0.5, 3.0]])
    net = nn.Sequential(nn.Linear(4, 1), nn.ReLU(), nn.Linear(1, 1)).eval()
    net[0].weight.data, net[0].bias.data = weight, torch.tensor([20.0])
    net[2].weight.data, net[2].bias.data = torch.ones(1, 1), torch.tensor([-20.0])
    result = fw.maximize(
        fw.Problem(net, fw.objectives.Output(0), fw.Box(-1, 2, shape=(4,))),
        solver=solver,
        starts=3,
    )
    best = 2 * weight.clamp(min=0).sum() - weight.clamp(max=0).sum()
    assert result.value.item() == pytest.approx(best.item(), rel=0.02)


def test_strong_solvers_find_the_optimum_that_a_fine_grid_proves():
    net = random_network((2, 10, 10, 1), seed=12)
    axis = torch.linspace(-1, 1, 801)
    proven = net(torch.cartesian_prod(axis, axis)).max().item()
    problem = fw.Problem(net, fw.objectives.Output(0), fw.Box(-1, 1, shape=(2,)))
    for name in ("gd", "adam", "sign", "apgd", "adr-gd", "activation-descent"):
        found = fw.maximize(problem, solver=replace(SOLVERS[name], steps=200), starts=20).value
        assert proven - 0.01 <= found.item() <= proven + 0.01, name


@every_method
def test_results_are_feasible_honest_and_never_worse_than_the_start(solver):
    net, labels = small_classifier(), torch.arange(6) % 4
    for space in balls(6).values():
        objective = fw.objectives.Margin(labels)
        result = fw.maximize(fw.Problem(net, objective, space), solver=solver, starts=2)
        assert space.contains(result.x).all()
        assert torch.equal(result.value, objective(net(result.x)).detach())
        assert (result.value >= result.initial_value - 1e-12).all()
        assert torch.allclose(
            result.initial_value, objective(net(space.center)).detach(), atol=1e-12
        )


@every_solver
def test_backward_passes_are_as_many_as_the_solver_says(solver):
    net = small_classifier()
    result = fw.maximize(
        fw.Problem(net, fw.objectives.Output(0), balls(5)["linf"]), solver=solver, starts=3
    )
    assert (
        result.evaluations.backward.tolist() == [3 * solver.steps * solver.gradients_per_step] * 5
    )


@every_solver
def test_solvers_are_frozen_values(solver):
    with pytest.raises(FrozenInstanceError):
        solver.steps = 1
    copy = type(solver)(**{f.name: getattr(solver, f.name) for f in fields(solver) if f.init})
    assert copy == solver
    assert hash(copy) == hash(solver)
    assert type(solver).__name__ in repr(solver)
    with pytest.raises(TypeError):
        type(solver)(5)


@pytest.mark.parametrize("solver", solvers.BY_NAME.values())
def test_no_solver_takes_zero_steps(solver):
    if solver is not Fgsm:
        with pytest.raises(fw.InputError, match="steps must be at least 1"):
            solver(steps=0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Sign(decay="nonsense"), "Sign.decay must be one of constant, linear, cosine"),
        (lambda: Gd(normalization="l7"), "Gd.normalization must be one of none, l2, rms"),
        (lambda: AdrGd(normals="guess"), "AdrGd.normals must be one of auto, exact, probed"),
        (lambda: AdrGd(gate_bounds=(1, 0)), "AdrGd.gate_bounds must be"),
        (lambda: Sign(step_size=-1), "Sign.step_size must be positive"),
    ],
)
def test_settings_outside_their_range_are_refused(make, message):
    with pytest.raises(fw.InputError, match=message):
        make()


def test_gradient_is_that_of_finite_differences():
    net, space = small_classifier(), balls(3)["linf"]
    seen = []
    fw.maximize(
        fw.Problem(net, fw.objectives.Output(1), space),
        solver=Gd(steps=2, normalization="none", step_size=1e-3, decay="constant"),
        callback=lambda step: seen.append(step.x),
    )
    move = (seen[1] - seen[0]) / (1e-3 * space.radius)
    for i in range(8):
        h = torch.zeros(8, dtype=torch.float64)
        h[i] = 1e-6
        slope = (net(seen[0] + h) - net(seen[0] - h))[:, 1] / 2e-6
        inside = (seen[0][:, i] > 1e-2) & (seen[0][:, i] < 1 - 1e-2)
        assert torch.allclose(move[inside, i], slope[inside], atol=1e-5)


OPTIMISERS = {
    "adam": (solvers.Adam, torch.optim.Adam, {"lr": 0.02, "eps": 1e-12}),
    "adagrad": (solvers.Adagrad, torch.optim.Adagrad, {"lr": 0.02, "eps": 1e-12}),
    "rmsprop": (solvers.RmsProp, torch.optim.RMSprop, {"lr": 0.02, "alpha": 0.99, "eps": 1e-12}),
    "gd": (Gd, torch.optim.SGD, {"lr": 0.02}),
}


@pytest.mark.parametrize("name", OPTIMISERS)
def test_steps_equal_those_of_torch_optim(name):
    ours, theirs, options = OPTIMISERS[name]
    net = small_classifier()
    extra = {"normalization": "none"} if name == "gd" else {}
    points = []
    fw.maximize(
        fw.Problem(net, fw.objectives.Output(2), fw.Box(-50, 50, shape=(8,))),
        solver=ours(steps=40, step_size=0.02 / 50, decay="constant", **extra),
        callback=lambda step: points.append(step.x),
    )
    x = torch.zeros(1, 8, dtype=torch.float64, requires_grad=True)
    optimiser = theirs([x], maximize=True, **options)
    for point in points:
        assert torch.allclose(point, x, atol=1e-8)
        optimiser.zero_grad()
        net(x)[:, 2].sum().backward()
        optimiser.step()


@pytest.mark.parametrize(
    ("solver", "expected"),
    [
        (
            solvers.Adam(steps=2, step_size=0.4, mean_decay=0.9, square_decay=0.99),
            [(0.4, 0.1, 0.01), (0.2, 0.19, 0.0199)],
        ),
        (
            solvers.Adam(
                steps=3, step_size=0.4, decay="constant", mean_decay=0.5, square_decay=0.0
            ),
            [(0.4, 0.5, 1.0), (0.4, 0.75, 1.0), (0.4, 0.875, 1.0)],
        ),
        (solvers.Adagrad(steps=4, step_size=0.8), [(0.8,), (0.6,), (0.4,), (0.2,)]),
        (solvers.RmsProp(steps=2, step_size=0.8, decay="cosine"), [(0.8,), (0.4,)]),
    ],
)
def test_numbers_of_adaptive_solvers_are_the_step_and_what_is_missing_early(solver, expected):
    for t, numbers in enumerate(expected):
        assert solver.numbers(t) == pytest.approx(numbers)


@pytest.mark.parametrize(
    ("decay", "factors"),
    [
        ("constant", [1, 1, 1, 1]),
        ("linear", [1, 0.75, 0.5, 0.25]),
        ("cosine", [1, (1 + 2**-0.5) / 2, 0.5, (1 - 2**-0.5) / 2]),
    ],
)
def test_sign_steps_fall_as_asked(decay, factors):
    net = nn.Sequential(nn.Linear(3, 1), nn.ReLU()).double().eval()
    net[0].weight.data, net[0].bias.data = (
        torch.tensor([[1.0, -1.0, 2.0]]).double(),
        torch.ones(1).double() * 99,
    )
    points = []
    fw.maximize(
        fw.Problem(net, fw.objectives.Output(0), fw.Box(-10, 10, shape=(3,))),
        solver=Sign(steps=4, step_size=0.1, decay=decay),
        callback=lambda step: points.append(step.x[0]),
    )
    for (a, b), factor in zip(pairwise(points), factors, strict=False):
        assert torch.allclose(b - a, factor * torch.tensor([1.0, -1.0, 1.0]).double())


def test_momentum_adds_up_gradients_of_unit_l1_length():
    net, space = small_classifier(), balls(4)["linf"]
    points = []
    fw.maximize(
        fw.Problem(net, fw.objectives.Output(0), space),
        solver=Sign(steps=10, momentum=0.8, step_size=0.3),
        callback=lambda step: points.append(step.x),
    )
    x, memory = space.center, torch.zeros(4, 8, dtype=torch.float64)
    for t, point in enumerate(points):
        assert torch.allclose(point, x)
        leaf = x.clone().requires_grad_()
        (g,) = torch.autograd.grad(net(leaf)[:, 0].sum(), leaf)
        memory = 0.8 * memory + g / g.abs().sum(1, keepdim=True)
        x = space.project(x + 0.3 * (1 - t / 10) * space.eps * memory.sign())


def test_fgsm_is_one_step_to_the_edge():
    net, space, labels = small_classifier(), balls(5)["linf"], torch.arange(5) % 4
    objective = fw.objectives.CrossEntropy(labels)
    result = fw.maximize(fw.Problem(net, objective, space), solver=Fgsm())
    leaf = space.center.clone().requires_grad_()
    (g,) = torch.autograd.grad(objective(net(leaf)).sum(), leaf)
    expected = space.project(space.center + space.eps * g.sign())
    worse = objective(net(expected)) < objective(net(space.center))
    expected[worse] = space.center[worse]
    assert torch.allclose(result.x, expected)


def test_perturbed_gd_leaves_a_flat_start_and_gd_does_not():
    net = nn.Sequential(nn.Linear(2, 1), nn.ReLU()).eval()
    net[0].weight.data, net[0].bias.data = torch.tensor([[1.0, 1.0]]), torch.tensor([-0.1])
    problem = fw.Problem(net, fw.objectives.Output(0), fw.Box(-1, 1, shape=(2,)))
    flat = torch.zeros(1, 5, 2)
    assert fw.maximize(problem, solver=Gd(steps=200), x0=flat, starts=5).value.item() == 0
    solver = PerturbedGd(steps=200, noise_radius=0.3)
    perturbed = fw.maximize(problem, solver=solver, x0=flat, starts=5)
    assert perturbed.value.item() == pytest.approx(1.9)


def test_apgd_checks_its_step_where_croce_and_hein_say():
    p = [0.0, 0.22]
    while p[-1] < 1:
        p.append(p[-1] + max(p[-1] - p[-2] - 0.03, 0.06))
    expected = [round(100 * share) for share in p[1:] if share < 1]
    assert list(Apgd(steps=100).checkpoints()) == expected


def test_apgd_halves_its_step_and_returns_to_the_best_point():
    net = random_network((6, 30, 30, 1), seed=1).double()
    states = []

    class Spy(Apgd):
        def step(self, task, state, t):
            state, value = super().step(task, state, t)
            states.append(state)
            return state, value

    fw.maximize(
        fw.Problem(net, fw.objectives.Output(0), fw.Box(-1, 1, shape=(6,))), solver=Spy(steps=100)
    )
    sizes = [state.step_size.item() for state in states]
    changed = [t for t, (a, b) in enumerate(pairwise(sizes), 1) if a != b]
    assert changed
    assert set(changed) <= set(Apgd(steps=100).checkpoints())
    for t in changed:
        assert sizes[t] == sizes[t - 1] / 2
        assert torch.equal(states[t].previous_x, states[t].best_x)


@every_solver
def test_no_graph_is_carried_from_step_to_step(solver):
    states = []

    class Spy(type(solver)):
        def step(self, task, state, t):
            state, value = super().step(task, state, t)
            states.append((state, value))
            return state, value

    spy = Spy(**{f.name: getattr(solver, f.name) for f in fields(solver) if f.init})
    fw.maximize(
        fw.Problem(small_classifier(), fw.objectives.Output(0), balls(2)["linf"]), solver=spy
    )
    state, value = states[-1]
    tensors = [t for t in vars(state).values() if isinstance(t, torch.Tensor)]
    assert tensors
    assert not any(t.requires_grad for t in [*tensors, value])
