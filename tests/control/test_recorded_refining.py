"""Refined actions with steps that are replayed, from call to call, beside plain steps."""

import gc
import weakref

import numpy as np
import pytest
import torch
from agents import agent, observations
from test_refined_agents import made

from facetwalk.control import RefinedTD3, refine, refining
from facetwalk.solvers import AdrGd, Auto, Sign
from facetwalk.tape import Tape

SOLVERS = {
    "ADR-GD": AdrGd.for_experiment("td3"),
    "released": AdrGd.for_experiment("td3", "released"),
    "sign": Sign(steps=20, momentum=0.5),
    "auto": Auto(evaluations=100),
}


@pytest.fixture
def replays(monkeypatch):
    seen, replay = [], Tape.replay

    def watched(tape):
        seen.append(tape)
        replay(tape)

    monkeypatch.setattr(Tape, "replay", watched)
    return seen


@pytest.fixture
def plainly(monkeypatch):
    """Refines without recordings."""

    def plain(*args, **kwargs):
        with monkeypatch.context() as patch:
            patch.setattr(refining, "recordings_of", lambda *args: None)
            return refine(*args, **kwargs)

    return plain


def assert_same(found, plain):
    np.testing.assert_allclose(found.actions, plain.actions, atol=1e-5)
    np.testing.assert_allclose(found.before, plain.before, atol=1e-6)
    np.testing.assert_allclose(found.after, plain.after, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "judge", "solver"),
    [
        ("td3", "first", "ADR-GD"),
        ("td3", "minimum", "ADR-GD"),
        ("sac", "first", "sign"),
        ("sac", "minimum", "ADR-GD"),
        ("td3", "first", "released"),
        ("td3", "minimum", "sign"),
        ("td3", "first", "auto"),
    ],
)
def test_actions_are_those_of_plain_steps_while_weights_move(replays, plainly, name, judge, solver):
    model = agent(name)
    for number, count in enumerate((1, 3, 1)):
        options = {"solver": SOLVERS[solver], "judge": judge, "seed": number}
        seen = observations(count, seed=number)
        assert_same(refine(model, seen, **options), plainly(model, seen, **options))
        with torch.no_grad():
            for weight in model.critic.parameters():
                weight.add_(0.02 * torch.randn_like(weight))
    assert len({id(tape) for tape in replays}) < len(replays) / 3


def test_a_radius_a_new_optimum_and_weights_elsewhere_in_memory(plainly):
    model, seen = agent("td3"), observations(2)
    for radius in (None, 0.1, 0.0):
        assert_same(refine(model, seen, radius=radius), plainly(model, seen, radius=radius))
        vector = model.critic.parameters_to_vector() if radius else None
        if vector is not None:
            model.critic.load_from_vector(vector + 0.1)


def test_training_is_that_with_plain_steps(replays, monkeypatch):
    def trained():
        solver = AdrGd.for_experiment("td3")
        return made(RefinedTD3, epsilon=1.0, solver=solver, learning_starts=10).learn(16)

    recorded = trained()
    assert len(replays) > 5 * 95
    monkeypatch.setattr("facetwalk.control.refined_agents.recordings_of", lambda *args: None)
    plain = trained()
    actions = [model.replay_buffer.actions[:16] for model in (recorded, plain)]
    np.testing.assert_allclose(*actions, atol=1e-4)


def test_recordings_go_with_their_agent():
    model = agent("td3")
    refine(model, observations(2), solver=SOLVERS["ADR-GD"])
    critic, weight = weakref.ref(model.critic), weakref.ref(next(model.critic.parameters()))
    assert model.critic in refining._RECORDED
    del model
    gc.collect()
    assert critic() is None
    assert weight() is None


def test_agents_with_compiled_steps(tmp_path, plainly):
    model = made(RefinedTD3, epsilon=1.0, solver=Sign(steps=12), compile=True).learn(23)
    seen = observations(1)
    found = refine(model, seen, solver=model.solver, compile=True)
    assert_same(found, plainly(model, seen, solver=model.solver))
    model.save(tmp_path / "agent.zip")
    assert RefinedTD3.load(tmp_path / "agent.zip").compile
    assert not made(RefinedTD3).compile
