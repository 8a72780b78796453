"""ADR-GD against a transcription of Algorithm 1, and its settings against the paper's tables."""

from copy import deepcopy
from dataclasses import fields, replace

import pytest
import torch
from algorithm_1 import algorithm_1
from torch import nn

import facetwalk as fw
from facetwalk.solvers import AdrGd
from facetwalk.solvers.adr_gd_settings import EXPERIMENTS
from facetwalk.zoo import random_network


def fully_connected():
    net = random_network((6, 12, 9, 1), seed=3).double()
    return net, fw.objectives.Output(0), fw.Box(-1, 1, shape=(6,))


def convolutional():
    generator = torch.Generator().manual_seed(1)
    net = nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Conv2d(3, 4, 2), nn.ReLU(), nn.Flatten(), nn.Linear(36, 4)
    )
    for parameter in net.parameters():
        nn.init.normal_(parameter, std=0.4, generator=generator)
    image = torch.rand(1, 1, 6, 6, generator=generator, dtype=torch.float64)
    space = fw.LinfBall(image, eps=0.3, bounds=(0, 1))
    return net.double().eval(), fw.objectives.CrossEntropy(torch.tensor([2])), space


NETWORKS = {"fully connected": fully_connected, "convolutional": convolutional}
NOISY = {"noise_period": 4, "gate_tolerance": 0.5, "noise_scale": 0.05}
GENTLE = {"step_size": 0.1, "gate_step": 0.2}
"""Small steps: with large ones the walk is chaotic and rounding grows by a half each step."""
ABLATIONS = {
    "M1": {"objective_moves_gates": False},
    "M2": {"penalty_moves_input": False},
    "M3": {"normalize_by_normals": False},
    "M4": {"perturb": False},
}
CONFIGS = {
    **{name: AdrGd.preset(name) for name in ("paper", "released", "released-attack")},
    "soft gates": replace(
        AdrGd.preset("paper"), sharpness=20.0, gate_margin=0.1, **NOISY, **GENTLE
    ),
    **{
        f"{name}, soft gates": replace(
            AdrGd.preset(name), sharpness=50.0, record_only_noise_steps=False, **NOISY
        )
        for name in ("released", "released-attack")
    },
    **{
        name: replace(AdrGd.preset("released"), sharpness=50.0, **NOISY, **GENTLE, **change)
        for name, change in ABLATIONS.items()
    },
}


def trajectory(problem, solver, seed):
    points = []
    result = fw.maximize(
        problem, solver=solver, seed=seed, callback=lambda step: points.append(step.x[0])
    )
    return points, result


def gates_of(problem, solver):
    """The gates at the start of each step."""
    seen = []

    class Spy(AdrGd):
        def step(self, task, state, t):
            seen.append(state.eta.clone())
            return super().step(task, state, t)

    fw.maximize(problem, solver=Spy(**vars(solver)))
    return seen


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("name", CONFIGS)
def test_batched_solver_walks_as_algorithm_1_does(network, name):
    net, objective, space = NETWORKS[network]()
    solver = replace(CONFIGS[name], steps=50, normals="exact", normals_every=1)
    points, _ = trajectory(fw.Problem(net, objective, space), solver, seed=5)
    start = space.center[0].double()
    expected = algorithm_1(
        net, objective, space.to(torch.device("cpu"), torch.float64), start, solver, seed=5
    )
    worst = max((a - b).abs().max().item() for a, b in zip(points, expected, strict=False))
    assert len(points) == 50
    assert worst < 1e-4
    assert (expected[-1] - expected[0]).abs().max() > 0.05


@pytest.mark.parametrize("network", NETWORKS)
def test_noise_is_part_of_the_compared_walks(network):
    net, objective, space = NETWORKS[network]()
    solver = replace(CONFIGS["released, soft gates"], steps=50, normals="exact")
    space64 = space.to(torch.device("cpu"), torch.float64)
    noisy = algorithm_1(net, objective, space64, space64.center[0], solver, seed=5)
    assert algorithm_1.noise_added > 0
    quiet = replace(solver, perturb=False)
    silent = algorithm_1(net, objective, space64, space64.center[0], quiet, seed=5)
    assert max((a - b).abs().max() for a, b in zip(noisy, silent, strict=True)) > 1e-3


@pytest.mark.parametrize("preset", ["paper", "released-attack"])
def test_where_channels_lie_in_memory_changes_nothing_without_noise(preset):
    net, objective, space = convolutional()
    solver = replace(AdrGd.preset(preset), steps=12, perturb=False, **GENTLE)
    walks = [
        fw.maximize(fw.Problem(each, objective, space), solver=solver, trace=True)
        for each in (net, deepcopy(net).to(memory_format=torch.channels_last))
    ]
    torch.testing.assert_close(walks[0].x, walks[1].x)
    torch.testing.assert_close(walks[0].trace.best, walks[1].trace.best)


@pytest.mark.parametrize("change", ABLATIONS.values(), ids=ABLATIONS)
def test_every_ablation_changes_the_walk(change):
    net, objective, space = fully_connected()
    problem = fw.Problem(net, objective, space)
    whole = replace(AdrGd.preset("released"), sharpness=50.0, steps=60, **NOISY)
    ablated = replace(whole, **change)
    points, others = trajectory(problem, whole, 0)[0], trajectory(problem, ablated, 0)[0]
    assert max((a - b).abs().max() for a, b in zip(points, others, strict=True)) > 1e-3


def differing(a: AdrGd, b: AdrGd) -> set[str]:
    return {f.name for f in fields(AdrGd) if getattr(a, f.name) != getattr(b, f.name)}


def test_presets_differ_from_the_paper_in_exactly_the_documented_fields():
    paper = AdrGd.preset("paper")
    both = {
        "penalty_reduction",
        "gate_margin",
        "gate_bounds",
        "weight_bounds",
        "normalize_gradients",
        "output_scale",
    }
    attack = {
        "gate_reset_every",
        "own_gate_in_normal",
        "normal_floor",
        "accumulate_weight_gradient",
        "record_only_noise_steps",
    }
    assert differing(paper, AdrGd.preset("released")) == both
    assert differing(paper, AdrGd.preset("released-attack")) == both | attack
    assert paper == AdrGd()


PAPER_TABLES = r"""
mnist-untargeted    250   2    1    0.25 0.001  0.1  0.0001 0.1   5
cifar10-untargeted  500   0.5  0.1  0.5  0.001  0.2  0.001  0.1   5
imagenet-untargeted 500   0.5  0.1  0.5  0.001  0.1  0.01   0.05  5
mnist-targeted      250   2    0.5  0.1  0.001  0.01 0.0001 0.1   5
cifar10-targeted    500   1    0.1  0.5  0.001  0.1  0.001  0.05  5
imagenet-targeted   500   0.5  0.1  0.5  0.0001 0.01 0.01   0.05  5
ddpg                100   0.5  0.2  0.1  0.01   0.05 0.001  0.1   10
td3                 100   0.5  0.2  0.1  0.01   0.05 0.001  0.1   10
fruitbot            100   0.5  0.4  0.25 0.001  0.01 0.0001 0.1   10
coinrun             100   0.5  0.4  0.25 0.001  0.01 0.0001 0.1   10
model-a             3000  1    0.5  1    0.01   0.1  0.0001 0.001 25
model-b             3000  1    0.5  1    0.005  0.2  0.001  0.01  25
model-c             3000  1    0.5  1.25 0.0001 0.35 0.01   0.01  25
"""


@pytest.mark.parametrize("row", PAPER_TABLES.split("\n")[1:-1])
def test_experiments_carry_the_appendix_parameters(row):
    name, *numbers = row.split()
    steps, beta, x, eta, weight, noise, delta, delta_beta, period = map(float, numbers)
    solver = AdrGd.for_experiment(name, preset="released")
    assert (solver.steps, solver.penalty_weight, solver.step_size) == (steps, beta, x)
    assert (solver.gate_step, solver.weight_step, solver.noise_scale) == (eta, weight, noise)
    assert (solver.gate_tolerance, solver.weight_tolerance) == (delta, delta_beta)
    assert solver.noise_period == period
    assert solver.penalty_reduction == "max"


def test_every_experiment_is_in_the_tables_above():
    assert set(EXPERIMENTS) == {row.split()[0] for row in PAPER_TABLES.split("\n")[1:-1]}


@pytest.mark.parametrize("make", [AdrGd.preset, AdrGd.for_experiment])
def test_unknown_names_list_the_known_ones(make):
    with pytest.raises(fw.InputError, match=r"'nonsense'; there are \w"):
        make("nonsense")


def test_only_selected_sites_get_gates():
    net, objective, space = fully_connected()
    solver = AdrGd(steps=3, sites="last")
    assert gates_of(fw.Problem(net, objective, space), solver)[-1].shape == (1, 9)
    values = [
        fw.maximize(fw.Problem(net, objective, space), solver=s).value
        for s in (
            solver,
            replace(solver, sites="3"),
            replace(solver, sites=lambda s: s.neurons == 9),
        )
    ]
    assert values[0] == values[1] == values[2]


def test_partial_network_is_the_surrogate_with_plain_relus_elsewhere():
    net, objective, space = fully_connected()
    tail = nn.Sequential(*list(net)[2:])
    head = nn.Sequential(*list(net)[:2])

    class Squared(nn.Module):
        def __init__(self):
            super().__init__()
            self.head, self.tail = head, tail

        def forward(self, x):
            return self.tail(self.head(x) + 0 * x.sum(1, keepdim=True))

    points, _ = trajectory(
        fw.Problem(Squared().eval(), objective, space), AdrGd(steps=20, sites="tail"), 0
    )
    others, _ = trajectory(fw.Problem(net, objective, space), AdrGd(steps=20, sites="3"), 0)
    assert all(torch.allclose(a, b) for a, b in zip(points, others, strict=True))


@pytest.mark.parametrize(
    "change", [{"normals": "exact", "normals_every": 10}, {"normals": "probed", "probes": 4}]
)
def test_normals_methods_are_counted(change):
    net, objective, space = fully_connected()
    result = fw.maximize(fw.Problem(net, objective, space), solver=AdrGd(steps=50, **change))
    estimates, each = (5, 6) if change["normals"] == "exact" else (2, 4)
    assert result.evaluations.probe.tolist() == [estimates * each]
    assert result.evaluations.backward.tolist() == [100]


def test_normals_that_nothing_is_divided_by_are_not_measured():
    net, objective, space = fully_connected()
    solver = AdrGd(steps=10, normalize_by_normals=False)
    result = fw.maximize(fw.Problem(net, objective, space), solver=solver)
    assert result.evaluations.probe.tolist() == [0]


class TwoHeads(nn.Module):
    """The first of two outputs does not depend on the last ReLU."""

    def __init__(self):
        super().__init__()
        self.body = random_network((6, 10, 4), seed=2)
        self.side = nn.Linear(6, 5)

    def forward(self, x):
        return self.body(x), torch.relu(self.side(x))


@pytest.fixture
def nan_in_empty_tensors():
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.usefixtures("nan_in_empty_tensors")
@pytest.mark.parametrize("preset", ["paper", "released"])
def test_gates_that_the_objective_does_not_depend_on_stay_without_a_penalty(preset):
    problem = fw.Problem(TwoHeads().eval(), lambda y: y[0][:, 0], fw.Box(-1, 1, shape=(6,)))
    solver = replace(AdrGd.preset(preset), steps=20, perturb=False, sharpness=20.0, gate_margin=0.1)
    gates = gates_of(problem, replace(solver, penalty_weight=1e-20, weight_bounds=(0.0, 1e-20)))
    assert (gates[-1] - gates[0])[:, :-5].abs().max() > 0.1
    assert torch.equal(gates[-1][:, -5:], gates[0][:, -5:])


def test_gates_start_within_bounds_on_one_side_of_a_half():
    net, objective, space = fully_connected()
    solver = AdrGd(steps=1, gate_margin=0.05, gate_bounds=(0.52, 0.8))
    (gates,) = gates_of(fw.Problem(net, objective, space), solver)
    pattern = fw.sites.pattern(net, space.center.double())
    expected = torch.cat([torch.where(live, 0.55, 0.52) for live in pattern], 1)
    torch.testing.assert_close(gates, expected.double())


def test_recording_only_noise_steps_ignores_the_others():
    net, objective, space = fully_connected()
    solver = AdrGd(steps=30, record_only_noise_steps=True, gate_tolerance=0.0, perturb=False)
    values = []
    fw.maximize(
        fw.Problem(net, objective, space),
        solver=replace(solver, gate_tolerance=-1.0),
        callback=lambda step: values.append(step.value.item()),
    )
    assert values[0] > -torch.inf
    assert set(values[1:]) == {-torch.inf}


@pytest.mark.parametrize("field", ["step_size", "gate_step", "sharpness", "noise_period", "probes"])
def test_settings_that_cannot_work_are_refused(field):
    with pytest.raises(fw.InputError, match=f"AdrGd.{field} must be positive"):
        AdrGd(**{field: 0})


class InPlace(nn.Module):
    """Adds in place before and after its ReLUs, as residual networks do."""

    def __init__(self, in_place: bool):
        super().__init__()
        self.layers = nn.ModuleList(list(fully_connected()[0])[::2])
        self.in_place = in_place

    def forward(self, x):
        first, second, third = self.layers
        h = first(x)
        y = nn.functional.relu(h)
        if self.in_place:
            h += 1
            y += 0.5
            y = second(y).relu_()
            y *= 2
            y += h[:, :1]
        else:
            h = h + 1
            y = 2 * torch.relu(second(y + 0.5)) + h[:, :1]
        return third(y)


@pytest.mark.parametrize("preset", ["paper", "released"])
def test_work_in_place_changes_nothing(preset):
    _, objective, space = fully_connected()
    solver = replace(AdrGd.preset(preset), steps=30)
    walks = [
        trajectory(fw.Problem(InPlace(flag).eval(), objective, space), solver, 0)[0]
        for flag in (False, True)
    ]
    assert all(torch.allclose(a, b, atol=1e-8) for a, b in zip(*walks, strict=True))
    assert (walks[0][-1] - walks[0][0]).abs().max() > 0.05
