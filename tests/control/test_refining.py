"""Actions that a critic likes better than the actor's own."""

import numpy as np
import pytest
import torch
from agents import WideBox, agent, observations
from stable_baselines3 import PPO

from facetwalk import InputError
from facetwalk.control import refine
from facetwalk.solvers import AdrGd, Auto, Sign

SOLVERS = [AdrGd.for_experiment("td3"), Auto(evaluations=20), Sign(steps=10)]


def values(model, seen, actions, minimum):
    """What the critics say, by a pass of the test's own."""
    scaled = torch.from_numpy(model.policy.scale_action(actions))
    with torch.no_grad():
        of_all = torch.cat(model.critic(torch.from_numpy(seen), scaled.float()), 1)
    return (of_all.amin(1) if minimum else of_all[:, 0]).numpy()


@pytest.mark.parametrize("steps", [0, 120])
@pytest.mark.parametrize("name", ["td3", "ddpg", "sac"])
def test_no_action_is_worse_than_the_actors_own(name, steps):
    model, seen = agent(name, steps), observations(20)
    own, _ = model.predict(seen, deterministic=True)
    before = values(model, seen, own, name == "sac")
    for solver in SOLVERS:
        found = refine(model, seen, solver=solver)
        assert (found.after >= found.before).all()
        np.testing.assert_allclose(found.before, before, atol=1e-6)
        after = values(model, seen, found.actions, name == "sac")
        np.testing.assert_allclose(found.after, after, atol=1e-5)
        assert model.action_space.contains(found.actions[0])
    assert (found.after > found.before).any()


@pytest.mark.parametrize("judge", ["first", "minimum"])
def test_the_maximum_is_that_of_a_fine_grid(judge):
    model, seen = agent("td3", 120), observations(12)
    grid = np.linspace(-2, 2, 4001, dtype=np.float32)[:, None]
    best = [
        values(model, np.repeat(row[None], len(grid), 0), grid, judge == "minimum").max()
        for row in seen
    ]
    found = refine(model, seen, solver=Auto(evaluations=500), judge=judge)
    np.testing.assert_allclose(found.after, best, atol=3e-4)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_batch_is_what_a_loop_gives(solver):
    model, seen = agent("td3", 120), observations(6)
    together = refine(model, seen, solver=solver, seed=5)
    alone = [refine(model, row, solver=solver, seed=5 + b) for b, row in enumerate(seen)]
    assert alone[0].actions.shape == (1,)
    np.testing.assert_allclose(together.actions, [each.actions for each in alone], atol=1e-3)
    np.testing.assert_allclose(together.after, [each.after[0] for each in alone], atol=1e-5)


@pytest.mark.parametrize("solver", SOLVERS)
def test_actions_stay_within_the_radius_and_the_box(solver):
    model, seen = agent("td3", env=WideBox()), observations(10, 2)
    half = (model.action_space.high - model.action_space.low) / 2
    own, _ = model.predict(seen)
    found = refine(model, seen, solver=solver, radius=0.1)
    moved = np.abs(found.actions - own) / half
    assert moved.max() == pytest.approx(0.1, abs=1e-5)
    anywhere = refine(model, seen, solver=solver)
    assert all(model.action_space.contains(action) for action in anywhere.actions)
    assert (np.abs(anywhere.actions - own) / half).max() > 0.2
    assert anywhere.after.mean() > found.after.mean()
    np.testing.assert_allclose(refine(model, seen, solver=solver, radius=0).actions, own)


def test_an_agent_and_its_random_numbers_are_left_alone():
    model, seen = agent("sac"), observations(3)
    weights = {name: value.clone() for name, value in model.policy.state_dict().items()}
    torch.manual_seed(1)
    expected = torch.rand(1)
    torch.manual_seed(1)
    refine(model, seen)
    assert torch.equal(torch.rand(1), expected)
    assert all(torch.equal(weights[name], v) for name, v in model.policy.state_dict().items())


def test_what_cannot_be_refined_is_said_in_words():
    model = agent("td3")
    with pytest.raises(InputError, match="critic of actions, such as TD3, DDPG or SAC; this is a"):
        refine(PPO("MlpPolicy", "CartPole-v1", n_steps=8, batch_size=8), observations(2, 4))
    with pytest.raises(InputError, match="radius must be a number, not negative; it is -1"):
        refine(model, observations(2), radius=-1)
    with pytest.raises(InputError, match="radius must be a number, not negative; it is 'wide'"):
        refine(model, observations(2), radius="wide")
    with pytest.raises(InputError, match="there is no observation to refine an action at"):
        refine(model, observations(0))
    for wrong in (observations(2, 4), {"a": observations(2)}, (observations(2), {})):
        with pytest.raises(InputError, match=r"one or a batch of Box\(.*\(3,\), float32\): "):
            refine(model, wrong)
    with pytest.raises(InputError, match="judge must be one of first, minimum; it is 'all'"):
        refine(model, observations(2), judge="all")
