"""The same answers on a GPU, where there is one; steps that it replays are plain steps.

`test_replay.py` has the same comparisons on a CPU, with an imitation of CUDA graphs.
"""

import pytest
import torch
from torch import nn

import facetwalk as fw
from facetwalk import solvers
from facetwalk.replay import Replay
from facetwalk.solvers import ActivationDescent, Adam, Auto, Recombination, Sign
from facetwalk.zoo import StackedNetworks, random_network

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


@pytest.mark.parametrize("solver", solvers.BY_NAME.values(), ids=solvers.BY_NAME)
def test_results_and_random_numbers_are_those_of_the_cpu(solver):
    net = random_network((12, 24, 24, 4), seed=0).double()
    centers = torch.rand(8, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    space = fw.L2Ball(centers, eps=0.5, bounds=(0, 1))
    objective = fw.objectives.CrossEntropy(torch.arange(8) % 4)
    before = torch.cuda.get_rng_state()
    values = [
        fw.maximize(
            fw.Problem(net.to(device), objective, space), solver=solver(), starts=3, x0="sample"
        ).value.cpu()
        for device in ("cpu", "cuda")
    ]
    assert torch.allclose(*values, atol=1e-4)
    assert torch.equal(before, torch.cuda.get_rng_state())


SOLVERS = {
    "sign": Sign(steps=60),
    "sign, constant": Sign(steps=60, decay="constant", step_size=0.3),
    "sign, momentum": Sign(steps=60, momentum=0.8),
    "activation descent": ActivationDescent(steps=120, refresh=7),
    "activation descent, exact": ActivationDescent(steps=60, normals="exact", momentum=0.5),
    "recombination": Recombination(
        population=3,
        generations=5,
        first=ActivationDescent(steps=40),
        inner=ActivationDescent(steps=30, step_size=0.5, decay="constant"),
    ),
    "recombination of signs": Recombination(
        population=2,
        generations=4,
        first=Sign(steps=30, decay="constant", step_size=0.7),
        inner=Sign(steps=30, decay="constant", step_size=0.7),
    ),
    "polished": Recombination(
        population=2,
        generations=2,
        first=ActivationDescent(steps=20),
        inner=Sign(steps=20),
        polish=Adam(steps=10),
    ),
    "auto": Auto(evaluations=450),
}
every_solver = pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
KINDS = ["linf", "l2", "l1", "box"]


def problem(kind: str = "linf", count: int = 10) -> fw.Problem:
    net = random_network((12, 24, 24, 4), 1).double().cuda()
    generator = torch.Generator().manual_seed(4)
    centers = torch.rand(count, 12, generator=generator, dtype=torch.float64)
    space = {
        "linf": fw.LinfBall(centers, eps=0.3, bounds=(0, 1)),
        "l2": fw.L2Ball(centers, eps=0.5, bounds=(0, 1)),
        "l1": fw.L1Ball(centers, eps=0.8),
        "box": fw.Box(centers - 1, centers + 0.5, shape=(12,)),
    }[kind]
    return fw.Problem(net, fw.objectives.CrossEntropy(torch.arange(count) % 4), space)


@pytest.fixture
def recordings(monkeypatch):
    """Whether each recording succeeded."""
    seen = []
    record = Replay._recording

    def watched(self, kind):
        result = record(self, kind)
        seen.append(result[0] is not None)
        return result

    monkeypatch.setattr(Replay, "_recording", watched)
    return seen


def both(case: fw.Problem, **options) -> tuple[fw.Result, fw.Result]:
    """With plain steps, which a callback asks for, and replayed."""
    plain = fw.maximize(case, trace=True, callback=lambda step: None, **options)
    return plain, fw.maximize(case, trace=True, **options)


def assert_same(plain: fw.Result, replayed: fw.Result) -> None:
    for name in ("x", "value", "initial_value"):
        torch.testing.assert_close(
            getattr(replayed, name), getattr(plain, name), rtol=1e-8, atol=1e-9
        )
    torch.testing.assert_close(replayed.trace.best, plain.trace.best, rtol=1e-8, atol=1e-9)
    assert replayed.status == plain.status
    for name in ("forward", "backward", "probe"):
        counts = (getattr(result.evaluations, name) for result in (replayed, plain))
        assert torch.equal(*counts), name


@every_solver
@pytest.mark.parametrize("kind", KINDS)
def test_replayed_steps_are_plain_steps(recordings, solver, kind):
    assert_same(*both(problem(kind), solver=solver, seed=3))
    assert recordings
    assert all(recordings)


@every_solver
def test_starts_and_chunks(recordings, solver):
    assert_same(*both(problem(), solver=solver, starts=2, batch_size=7))
    assert all(recordings)


@every_solver
@pytest.mark.parametrize("rank", [1, 5, 8])
def test_problems_that_leave_change_nothing(recordings, solver, rank):
    free = fw.maximize(problem(), solver=solver).value
    threshold = free.sort().values[rank].item() - 1e-9
    plain, replayed = both(problem(), solver=solver, stop_at=threshold)
    assert_same(plain, replayed)
    reached = replayed.value >= threshold
    assert 0 < reached.sum() < 10
    assert (replayed.trace.best[:, -1] <= replayed.value + 1e-9).all()


@every_solver
def test_each_problem_with_its_own_network(recordings, solver):
    nets = [random_network((4, 12, 10, 1), seed).double() for seed in range(6)]
    stacked = StackedNetworks(nets).cuda()
    case = fw.Problem(stacked, fw.objectives.Output(0), fw.Box(-1, 1, shape=(4,)))
    threshold = fw.maximize(case, solver=solver).value.median().item() - 1e-9
    assert_same(*both(case, solver=solver))
    assert_same(*both(case, solver=solver, stop_at=threshold))
    assert all(recordings)


def test_an_image_network(recordings):
    with torch.random.fork_rng(devices=[0]):
        torch.manual_seed(0)
        net = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 8, 3),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(8 * 16, 10),
        )
        images = torch.rand(20, 1, 12, 12)
    net = net.double().cuda().eval()
    space = fw.LinfBall(images, eps=0.1, bounds=(0, 1))
    case = fw.Problem(net, fw.objectives.Margin(torch.arange(20) % 10), space)
    plain, replayed = both(case, solver=SOLVERS["recombination"])
    torch.testing.assert_close(replayed.value, plain.value, rtol=1e-6, atol=1e-6)
    assert all(recordings)


def asks_the_host(outputs: torch.Tensor) -> torch.Tensor:
    return outputs[:, 0] * (1.0 if outputs.sum().item() > -1e9 else 2.0)


@pytest.mark.parametrize("name", ["sign", "activation descent", "recombination"])
def test_steps_that_ask_the_host_are_taken_one_by_one(recordings, name):
    case = fw.Problem(problem().model, asks_the_host, problem().space)
    assert_same(*both(case, solver=SOLVERS[name]))
    assert recordings
    assert not any(recordings)
    torch.cuda.synchronize()
    assert_same(*both(problem(), solver=SOLVERS[name]))  # the device is as good as before
    assert recordings[-1]


def test_what_is_recorded_serves_later_generations(recordings):
    inner = ActivationDescent(steps=30)
    fw.maximize(
        problem(), solver=Recombination(population=2, generations=6, first=inner, inner=inner)
    )
    assert len(recordings) == 2


def test_short_rounds_are_not_recorded(recordings):
    fw.maximize(problem(), solver=Sign(steps=5))
    assert not recordings


def test_a_budget_in_seconds_is_kept():
    fw.maximize(problem(), evaluations=300)
    result = fw.maximize(problem(), seconds=2.0)
    assert 1.0 < result.seconds < 5.0
    timed = fw.maximize(problem(), solver=Sign(steps=10**7), seconds=1.0)
    assert timed.seconds < 4.0
    assert set(timed.status) == {fw.Status.STOPPED}


def test_thousands_of_rows_fit():
    result = fw.maximize(problem(count=3000), evaluations=300)
    assert (result.value >= result.initial_value).all()
    assert result.evaluations.backward.min() >= 270
