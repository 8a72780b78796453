"""TD3 and DDPG with refined exploitation, beside Stable-Baselines3's own."""

import gymnasium
import numpy as np
import pytest
import torch
from agents import WideBox, small
from stable_baselines3 import DDPG, TD3
from stable_baselines3.common.callbacks import CheckpointCallback, EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.noise import NormalActionNoise

from facetwalk import InputError
from facetwalk.control import RefinedDDPG, RefinedTD3, refine
from facetwalk.solvers import AdrGd, Sign

QUICK = Sign(steps=5)
PAIRS = [(RefinedTD3, TD3), (RefinedDDPG, DDPG)]


def made(kind, env="Pendulum-v1", **settings):
    settings = {"learning_starts": 20, "batch_size": 16, "seed": 0, **settings}
    return kind("MlpPolicy", env, policy_kwargs=small(), buffer_size=1000, **settings)


def weights(model):
    return torch.cat([value.flatten() for value in model.policy.state_dict().values()])


def noise(size=1):
    return NormalActionNoise(np.zeros(size), 0.1 * np.ones(size))


@pytest.mark.parametrize(("refined", "plain"), PAIRS)
def test_without_refinement_training_is_stable_baselines3s_own(refined, plain):
    ours = made(refined, epsilon=0.0, action_noise=noise()).learn(60)
    theirs = made(plain, action_noise=noise()).learn(60)
    assert torch.equal(weights(ours), weights(theirs))
    np.testing.assert_array_equal(ours.replay_buffer.actions, theirs.replay_buffer.actions)


@pytest.mark.parametrize(("refined", "plain"), PAIRS)
def test_every_action_after_the_first_random_ones_is_refined_with_probability_one(refined, plain):
    env = WideBox()
    model = made(refined, env, epsilon=1.0, solver=QUICK, gradient_steps=0)
    model.learn(40)
    buffer = model.replay_buffer
    states, stored = buffer.observations[20:40, 0], buffer.actions[20:40, 0]
    found = refine(model, states, solver=QUICK, judge="first")
    np.testing.assert_allclose(model.policy.unscale_action(stored), found.actions, atol=1e-4)
    np.testing.assert_allclose(env.seen[20:40], found.actions, atol=1e-4)
    assert (found.after > found.before).mean() > 0.5
    random = made(plain, WideBox(), gradient_steps=0).learn(40).replay_buffer.actions[:20]
    np.testing.assert_array_equal(buffer.actions[:20], random)


def test_noise_is_added_to_refined_actions_as_to_others():
    model = made(RefinedTD3, WideBox(), epsilon=1.0, solver=QUICK, gradient_steps=0)
    model.action_noise = noise(3)
    model.learn(60)
    buffer = model.replay_buffer
    found = refine(model, buffer.observations[20:60, 0], solver=QUICK, judge="first")
    scaled = model.policy.scale_action(found.actions)
    moved = buffer.actions[20:60, 0] - scaled
    inside = np.abs(scaled) < 0.6
    assert 0.05 < moved[inside].std() < 0.15
    assert np.abs(buffer.actions).max() <= 1


def test_a_share_of_the_actions_of_each_environment_is_refined():
    env = make_vec_env("Pendulum-v1", 3, seed=0)
    model = made(RefinedTD3, env, epsilon=0.4, solver=QUICK, gradient_steps=0, learning_starts=0)
    model.learn(300)
    changed = []
    for number in range(3):
        states = model.replay_buffer.observations[:100, number]
        own = model.policy.scale_action(model.predict(states)[0])
        changed.append(np.abs(model.replay_buffer.actions[:100, number] - own)[:, 0] > 1e-5)
    assert all(0.25 < each.mean() < 0.55 for each in changed)
    assert not np.array_equal(changed[0], changed[1])


def test_the_same_seed_gives_the_same_training():
    first, again, other = (
        made(RefinedTD3, epsilon=0.5, solver=QUICK, seed=seed).learn(50) for seed in (1, 1, 2)
    )
    assert torch.equal(weights(first), weights(again))
    assert not torch.equal(weights(first), weights(other))
    assert made(RefinedTD3, seed=None).dice != made(RefinedTD3, seed=None).dice


@pytest.mark.parametrize("refined", [RefinedTD3, RefinedDDPG])
def test_saved_agents_come_back_as_they_were(refined, tmp_path):
    model = made(refined, epsilon=0.75, solver=QUICK, radius=0.5, judge="minimum").learn(30)
    model.save(tmp_path / "agent.zip")
    model.save_replay_buffer(tmp_path / "buffer.pkl")
    back = refined.load(tmp_path / "agent.zip", env=gymnasium.make("Pendulum-v1"))
    back.load_replay_buffer(tmp_path / "buffer.pkl")
    assert (back.epsilon, back.solver, back.radius, back.judge) == (0.75, QUICK, 0.5, "minimum")
    assert back.dice == model.dice
    assert torch.equal(weights(back), weights(model))
    assert back.learn(10, reset_num_timesteps=False).num_timesteps == 40
    assert refined.load(tmp_path / "agent.zip", epsilon=0.0).epsilon == 0.0


def test_agents_of_either_kind_load_as_the_other(tmp_path):
    made(TD3).save(tmp_path / "plain.zip")
    assert RefinedTD3.load(tmp_path / "plain.zip").epsilon == 0.25
    made(RefinedTD3).save(tmp_path / "refined.zip")
    assert type(TD3.load(tmp_path / "refined.zip")) is TD3


def test_callbacks_and_tensorboard_see_the_training(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    checkpoints = CheckpointCallback(25, str(tmp_path))
    evaluations = EvalCallback(
        make_vec_env("Pendulum-v1"), n_eval_episodes=1, eval_freq=25, verbose=0, warn=False
    )
    model = made(RefinedTD3, epsilon=1.0, solver=QUICK, tensorboard_log=str(tmp_path))
    model.learn(210, callback=[checkpoints, evaluations], log_interval=1)
    assert len(list(tmp_path.glob("rl_model_*.zip"))) == 8
    assert np.isfinite(evaluations.last_mean_reward)
    events = EventAccumulator(str(tmp_path / "TD3_1")).Reload()
    assert {"refinement/share", "refinement/value_gain"} <= set(events.Tags()["scalars"])
    assert events.Scalars("refinement/share")[0].value == 1.0


def test_predictions_outside_of_training_are_the_actors_own():
    model = made(RefinedTD3, epsilon=1.0, solver=QUICK).learn(30)
    seen = model.replay_buffer.observations[:10, 0]
    with torch.no_grad():
        own = model.actor(torch.from_numpy(seen)).numpy()
    np.testing.assert_array_equal(model.predict(seen)[0], model.policy.unscale_action(own))


def test_defaults_are_the_papers():
    model = made(RefinedTD3)
    assert (model.epsilon, model.radius, model.judge) == (0.25, None, "first")
    assert model.solver == AdrGd.for_experiment("td3")
    assert made(RefinedDDPG).solver == AdrGd.for_experiment("ddpg")


@pytest.mark.parametrize("refined", [RefinedTD3, RefinedDDPG])
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": 2}, "epsilon must be a probability, from 0 to 1; it is 2"),
        ({"radius": -1}, "radius must be a number, not negative; it is -1"),
        ({"radius": float("nan")}, "radius must be a number, not negative; it is nan"),
        ({"radius": "0.1"}, "radius must be a number, not negative; it is '0.1'"),
        ({"solver": "pgd"}, "the solver must be one of facetwalk.solvers, made; it is 'pgd'"),
        ({"solver": Sign}, "the solver must be one of facetwalk.solvers, made; it is <class"),
        ({"judge": "x"}, "judge must be one of first, minimum; it is 'x'"),
    ],
)
def test_what_no_action_can_be_refined_by_is_refused_when_an_agent_is_made(
    refined, settings, message
):
    with pytest.raises(InputError, match=message):
        made(refined, **settings)
