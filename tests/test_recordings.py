"""Steps replayed on a CPU, in one call and from call to call, beside plain ones."""

from __future__ import annotations

import threading

import pytest
import torch
from replayed import SOLVERS, asks_the_host, assert_same, every_solver, problem
from torch import nn

import facetwalk as fw
from facetwalk.recordings import Recordings
from facetwalk.solvers import Adam, AdrGd, Sign
from facetwalk.tape import Tape


@pytest.fixture
def replays(monkeypatch):
    """The tape of each step that was replayed."""
    seen, replay = [], Tape.replay

    def watched(tape):
        seen.append(tape)
        replay(tape)

    monkeypatch.setattr(Tape, "replay", watched)
    return seen


def both(case: fw.Problem, recordings: Recordings, **options) -> tuple[fw.Result, fw.Result]:
    plain = fw.maximize(case, trace=True, **options)
    return plain, fw.maximize(case, trace=True, recordings=recordings, **options)


@every_solver
def test_recorded_steps_are_plain_steps_in_every_call(replays, solver):
    case, recordings = problem(), Recordings()
    taken = []
    for seed in range(2):
        assert_same(*both(case, recordings, solver=solver, seed=seed))
        taken.append(len(replays))
    assert 0 < taken[0] < taken[1] - taken[0]


@pytest.mark.parametrize("kind", ["l2", "l1", "box"])
def test_every_space(replays, kind):
    assert_same(*both(problem(kind), Recordings(), solver=SOLVERS["ADR-GD"], seed=3))
    assert replays


def test_weights_may_change_in_place_and_in_memory():
    case, recordings = problem(), Recordings()
    for change in ("none", "add", "data", "parameter", "none"):
        with torch.no_grad():
            for layer in (part for part in case.model.modules() if isinstance(part, nn.Linear)):
                moved = layer.weight + 0.1 * torch.randn_like(layer.weight)
                if change == "add":
                    layer.weight.copy_(moved)
                elif change == "data":
                    layer.weight.data = moved
                elif change == "parameter":
                    layer.weight = nn.Parameter(moved)
        for name in ("ADR-GD", "activation descent, exact"):
            assert_same(*both(case, recordings, solver=SOLVERS[name]))


def test_another_model_objective_or_size_is_another_recording():
    recordings = Recordings()
    wide, narrow = problem(), problem(count=3)
    others = nn.Sequential(*wide.model[:-2], nn.LeakyReLU(0.5), wide.model[-1])
    for case in (
        wide,
        narrow,
        fw.Problem(wide.model, fw.objectives.Output(0), wide.space),
        fw.Problem(wide.model, fw.objectives.Output(1), wide.space),
        fw.Problem(others.eval(), fw.objectives.Output(1), wide.space),
        fw.Problem(wide.model, fw.objectives.Output(1), problem("l2").space),
        wide,
    ):
        for solver in (Sign(steps=20), SOLVERS["ADR-GD"]):
            assert_same(*both(case, recordings, solver=solver))
    assert len(recordings._replays) == 8


def test_problems_that_leave():
    free = fw.maximize(problem(count=10), solver=SOLVERS["adam"]).value
    recordings = Recordings()
    for rank in (2, 7, 2):
        threshold = free.sort().values[rank].item() - 1e-9
        assert_same(*both(problem(count=10), recordings, solver=SOLVERS["adam"], stop_at=threshold))


def test_steps_that_ask_for_values_are_taken_plainly(replays):
    own = fw.Problem(problem().model, asks_the_host, problem().space)
    for name in ("sign", "ADR-GD", "polished"):
        assert_same(*both(own, Recordings(), solver=SOLVERS[name]))
    assert not replays


class Moody(nn.Module):
    """Does something else from the third of its gradients on."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.gradients = 0

    def forward(self, x):
        self.gradients += torch.is_grad_enabled()
        return (x * self.weight)[:, :1] * (1 if self.gradients < 3 else -1)


def test_a_tape_that_differs_from_the_next_step_is_not_used(replays):
    case = fw.Problem(Moody().eval(), fw.objectives.Output(0), fw.Box(-1, 1, shape=(3,)))
    fw.maximize(case, solver=Sign(steps=30, decay="constant"), recordings=Recordings())
    assert len(replays) == 1


class Gain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.0, -2.0, 3.0]))
        self.gain = 1.0

    def forward(self, x):
        return self.gain * (x * self.weight).sum(1, keepdim=True)


def test_a_model_that_has_become_another_is_recorded_anew():
    model, recordings, solver = Gain().eval(), Recordings(), Sign(steps=20)
    case = fw.Problem(model, fw.objectives.Output(0), fw.Box(-1, 1, shape=(3,)))
    fw.maximize(case, solver=solver, recordings=recordings)
    model.gain = -2.0
    found = fw.maximize(case, solver=solver, recordings=recordings)
    with torch.no_grad():
        assert found.value.item() == model(found.x).item()
    assert_same(*both(case, recordings, solver=solver))


def test_callbacks_see_every_step(replays):
    steps = []
    fw.maximize(
        problem(),
        solver=Sign(steps=30),
        callback=lambda step: steps.append(step.step),
        recordings=Recordings(),
    )
    assert steps == list(range(1, 31))
    assert not replays


def test_calls_at_the_same_time_do_not_share(replays):
    recordings, found = Recordings(), []
    with recordings.borrowed() as own:
        assert own is recordings
        thread = threading.Thread(
            target=lambda: found.append(
                fw.maximize(problem(), solver=Sign(steps=30), recordings=recordings)
            )
        )
        thread.start()
        thread.join()
    assert not replays
    plain = fw.maximize(problem(), solver=Sign(steps=30))
    assert torch.equal(found[0].x, plain.x)


def test_compiled_steps_are_plain_steps(replays):
    case, recordings = problem(), Recordings(compile=True)
    for seed in range(2):
        assert_same(*both(case, recordings, solver=Adam(steps=20), seed=seed))
    assert len(replays) == 1  # the check


def test_that_steps_cannot_be_compiled_is_said_in_words(monkeypatch):
    def fails(*args):
        raise RuntimeError("no compiler\nat all")

    monkeypatch.setattr("facetwalk.tape.compiling.compile_graph", fails)
    for _ in range(2):
        with pytest.raises(fw.InputError, match=r"install g\+\+ or clang.*\(no compiler\)"):
            fw.maximize(problem(), solver=AdrGd(steps=12), recordings=Recordings(compile=True))
