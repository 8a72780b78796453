"""The same answers on a GPU, where there is one; steps that it replays are plain steps.

`test_replay.py` has the same comparisons on a CPU, with an imitation of CUDA graphs.
"""

from dataclasses import replace

import pytest
import replayed
import torch
from replayed import SOLVERS, asks_the_host, assert_same, every_solver
from torch import nn

import facetwalk as fw
from facetwalk import loop, replay, solvers
from facetwalk.digests import digest
from facetwalk.solvers import ActivationDescent, Auto, Recombination, Sign
from facetwalk.training import recipe_of, train
from facetwalk.training.making import repeatable_convolutions
from facetwalk.zoo import StackedNetworks, random_network, uniform_network

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


KINDS = ["linf", "l2", "l1", "box"]


def problem(kind: str = "linf", count: int = 10) -> fw.Problem:
    return replayed.problem(kind, count, device="cuda")


@pytest.fixture
def recordings(monkeypatch):
    """Whether each recording succeeded."""
    seen = []
    capture = replay._capture

    def watched(*args):
        graph = capture(*args)
        seen.append(graph is not None)
        return graph

    monkeypatch.setattr(replay, "_capture", watched)
    return seen


def both(case: fw.Problem, **options) -> tuple[fw.Result, fw.Result]:
    """With plain steps, which a callback asks for, and replayed."""
    plain = fw.maximize(case, trace=True, callback=lambda step: None, **options)
    return plain, fw.maximize(case, trace=True, **options)


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
    plain, again = both(problem(), solver=solver, stop_at=threshold)
    assert_same(plain, again)
    reached = again.value >= threshold
    assert 0 < reached.sum() < 10
    assert (again.trace.best[:, -1] <= again.value + 1e-9).all()


@every_solver
def test_each_problem_with_its_own_network(recordings, solver):
    nets = [random_network((4, 12, 10, 1), seed).double() for seed in range(6)]
    stacked = StackedNetworks(nets).cuda()
    case = fw.Problem(stacked, fw.objectives.Output(0), fw.Box(-1, 1, shape=(4,)))
    threshold = fw.maximize(case, solver=solver).value.median().item() - 1e-9
    assert_same(*both(case, solver=solver))
    assert_same(*both(case, solver=solver, stop_at=threshold))
    assert all(recordings)


def image_problem() -> fw.Problem:
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
    return fw.Problem(net, fw.objectives.Margin(torch.arange(20) % 10), space)


def test_an_image_network(recordings):
    plain, again = both(image_problem(), solver=SOLVERS["recombination"])
    torch.testing.assert_close(again.value, plain.value, rtol=1e-6, atol=1e-6)
    assert all(recordings)


@pytest.mark.parametrize("name", ["sign", "activation descent", "adam", "recombination"])
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


def test_on_the_way_to_a_threshold_all_rounds_share_two_recordings(recordings):
    objective = fw.objectives.Margin(torch.arange(10) % 4)
    case = fw.Problem(problem().model, objective, problem().space)
    plan = Auto(evaluations=1000).plan(to_the_last_digit=False)
    assert_same(*both(case, solver=plan))
    assert recordings == [True, True]


@every_solver
def test_recordings_serve_later_calls(recordings, solver):
    case, kept = problem(), fw.Recordings()
    for seed in (1, 2):  # what happens once in a call is recorded in the second
        fw.maximize(case, solver=solver, seed=seed, recordings=kept)
    recordings.clear()
    plain = fw.maximize(case, trace=True, callback=lambda step: None, solver=solver, seed=3)
    again = fw.maximize(case, trace=True, solver=solver, seed=3, recordings=kept)
    assert_same(plain, again)
    assert not recordings


def test_recordings_see_other_weights_and_another_precision():
    case, kept = image_problem(), fw.Recordings()
    single = fw.Problem(case.model.float(), case.objective, case.space)
    for precision in ("full", "tf32", "full"):
        with torch.no_grad():
            for weight in single.model.parameters():
                weight.mul_(1.1)
        options = {"solver": Sign(steps=20), "precision": precision}
        plain = fw.maximize(single, callback=lambda step: None, **options)
        again = fw.maximize(single, recordings=kept, **options)
        torch.testing.assert_close(again.value, plain.value, rtol=1e-2, atol=1e-2)


@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
def test_the_loop_does_not_wait_for_the_device(recordings, monkeypatch):
    """Once the first round is recorded, the host runs ahead to the end of each round."""
    case, inner = image_problem(), ActivationDescent(steps=12)
    solver = Recombination(population=3, generations=4, first=inner, inner=inner)
    fw.maximize(case, solver=solver)
    recordings.clear()
    run_round, rounds = loop._Chunk._run_round, []

    def watched(chunk, solver, task, first):
        rounds.append(first)
        torch.cuda.set_sync_debug_mode("default" if first else "error")
        try:
            run_round(chunk, solver, task, first)
        finally:
            torch.cuda.set_sync_debug_mode("default")

    monkeypatch.setattr(loop._Chunk, "_run_round", watched)
    fw.maximize(case, solver=solver)
    assert rounds == [True, False, False, False]
    assert recordings == [True, True]


def test_short_rounds_are_not_recorded(recordings):
    fw.maximize(problem(), solver=Sign(steps=5))
    assert not recordings


def test_a_budget_in_seconds_is_kept():
    fw.maximize(problem(), evaluations=300)
    result = fw.maximize(problem(), seconds=2.0)
    assert 0.4 < result.seconds < 5.0  # others may be at work there while speed is measured
    timed = fw.maximize(problem(), solver=Sign(steps=10**7), seconds=1.0)
    assert timed.seconds < 4.0
    assert set(timed.status) == {fw.Status.STOPPED}


def test_thousands_of_rows_fit():
    result = fw.maximize(problem(count=3000), evaluations=300)
    assert (result.value >= result.initial_value).all()
    assert result.evaluations.backward.min() >= 270


def test_a_recording_has_room_beside_what_torch_keeps_for_later(recordings):
    torch.cuda.empty_cache()
    torch.empty(int(0.95 * torch.cuda.mem_get_info()[0]), dtype=torch.uint8, device="cuda")
    fw.maximize(problem(count=3000), evaluations=300)
    assert recordings
    assert all(recordings)
    assert torch.cuda.mem_get_info()[0] > 0.5 * torch.cuda.mem_get_info()[1]


def test_a_training_gives_the_same_weights_again():
    recipe = replace(recipe_of("cifar-vgg19-pgd"), epochs=1, batch_size=32, attack_steps=2)
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(100, 3, 32, 32, generator=generator).cuda()
    labels = torch.arange(100).cuda() % 10

    def weights() -> list[torch.Tensor]:
        with repeatable_convolutions():
            return list(train(recipe, images, labels).net.state_dict().values())

    assert digest(weights()) == digest(weights())


@pytest.mark.parametrize("engine", ["boxes", "milp"])
def test_a_maximum_is_proven_as_on_a_cpu(engine):
    pytest.importorskip("highspy", reason="highspy is not installed")
    net, space = uniform_network((4, 14, 10, 1), 0), fw.Box(-1, 1, shape=(4,))
    proofs = [
        fw.exact.maximize(net.to(device), space, fw.objectives.Output(0), gap=1e-3, engine=engine)
        for device in ("cpu", "cuda")
    ]
    assert all(proof.proven for proof in proofs)
    assert proofs[1].x.is_cuda
    assert abs(proofs[0].value - proofs[1].value) <= 1e-3


def test_optimised_slopes_bound_as_on_a_cpu():
    pytest.importorskip("highspy", reason="highspy is not installed")
    net, space = uniform_network((20, 30, 20, 1), 0), fw.Box(-0.1, 0.1, shape=(20,))
    options = {"engine": "milp", "threshold": 11.0}  # plain slopes give 12.98, the maximum is 3.31
    proofs = [
        fw.exact.maximize(net.to(device), space, fw.objectives.Output(0), **options)
        for device in ("cpu", "cuda")
    ]
    assert [proof.nodes for proof in proofs] == [0, 0]
    assert all(3.31 < proof.bound <= 11.0 for proof in proofs)
    assert proofs[0].bound == pytest.approx(proofs[1].bound, abs=1e-6)
