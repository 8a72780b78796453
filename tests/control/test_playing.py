"""Episodes of policies, attacked or not, beside a loop written by hand."""

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, MultiBinary
from policies import Pictures, image_ppo, linear, relu_ppo, shown
from stable_baselines3.common.env_util import make_vec_env

from facetwalk import InputError
from facetwalk.control import attack_policy, play
from facetwalk.solvers import Auto, Fgsm, Sign

QUICK = Sign(steps=3)


def by_hand(agent, count, shares):
    """Returns and lengths of the first episodes of each environment."""
    env = make_vec_env("CartPole-v1", count)
    env.seed(7)
    seen, sums, steps, found = env.reset(), np.zeros(count), np.zeros(count), []
    left = list(shares)
    while any(left):
        seen, rewards, over, _ = env.step(agent.predict(seen, deterministic=True)[0])
        sums, steps = sums + rewards, steps + 1
        for i in np.flatnonzero(over):
            if left[i]:
                found.append((sums[i], steps[i]))
                left[i] -= 1
            sums[i] = steps[i] = 0
    return [list(column) for column in zip(*found, strict=True)]


@pytest.mark.parametrize(("count", "shares"), [(1, [4]), (3, [2, 1, 1])])
def test_without_an_attack_returns_are_those_of_a_loop_written_by_hand(count, shares):
    agent = relu_ppo()
    episodes = play(agent, make_vec_env("CartPole-v1", count), 4, seed=7)
    returns, lengths = by_hand(agent, count, shares)
    assert episodes.returns.tolist() == returns
    assert episodes.lengths.tolist() == lengths
    assert episodes.flipped == 0
    assert episodes.mean == pytest.approx(np.mean(returns))
    spread = np.std(returns, ddof=1) / 2
    assert episodes.half_width == pytest.approx(1.96 * spread)


def test_environments_of_gymnasium_give_the_same_returns():
    agent = relu_ppo()
    theirs = play(agent, make_vec_env("CartPole-v1", 2), 2, seed=7)
    ours = play(agent, gymnasium.make_vec("CartPole-v1", 2, "sync"), 2, seed=7)
    assert sorted(ours.returns) == sorted(theirs.returns)


def test_an_attacked_policy_acts_on_what_it_sees_alone():
    agent, turns = relu_ppo(), []
    env = make_vec_env("CartPole-v1", 2)
    episodes = play(agent, env, 4, attack=QUICK, eps=0.3, seed=7, callback=turns.append)
    seen = [turn.attacked.observations.numpy() for turn in turns]
    acted = [agent.predict(each, deterministic=True)[0] for each in seen]
    assert all((turn.actions == a).all() for turn, a in zip(turns, acted, strict=True))
    flips = np.concatenate([turn.attacked.flipped.numpy() for turn in turns])
    assert 0 < episodes.flipped == flips.mean()
    moved = max(np.abs(x - turn.observations).max() for x, turn in zip(seen, turns, strict=True))
    assert moved == pytest.approx(0.3, abs=1e-5)
    assert episodes.seconds_per_step > 0


def test_environments_whose_share_is_played_are_attacked_no_more():
    turns = []
    env = make_vec_env("CartPole-v1", 3)
    play(relu_ppo(), env, 1, attack=QUICK, seed=7, callback=turns.append)
    assert all(turn.environments.tolist() == [0] for turn in turns)


def test_an_attacked_environment_shows_perturbed_bytes_and_reports():
    env = make_vec_env(Pictures, 3, seed=0)
    agent = image_ppo(env)
    attacked = attack_policy(agent, agent.get_env(), eps=3 / 255, solver=QUICK)
    shown = attacked.reset()
    totals = []
    for _ in range(20):
        assert shown.dtype == np.uint8
        actions, _ = agent.predict(shown, deterministic=True)
        shown, _, over, infos = attacked.step(actions)
        totals += [infos[i]["episode"]["r"] for i in np.flatnonzero(over)]
    report = attacked.report()
    np.testing.assert_allclose(report.returns, totals, atol=1e-4)
    assert 0 <= report.flipped <= 1
    assert report.lengths.max() <= 5


def test_an_attacked_environment_is_what_playing_under_attack_is():
    agent, eps = relu_ppo(), 0.3
    env = attack_policy(agent, make_vec_env("CartPole-v1", 1), eps, solver=Sign(steps=3))
    env.seed(7)
    seen, over = env.reset(), [False]
    while not over[0]:
        seen, _, over, _ = env.step(agent.predict(seen, deterministic=True)[0])
    played = play(agent, make_vec_env("CartPole-v1", 1), 1, attack=QUICK, eps=eps, seed=7)
    assert env.report().returns.tolist() == played.returns.tolist()


@pytest.mark.parametrize("space", [MultiBinary(4), Box(0, 9, (4,), np.int64)], ids=str)
@pytest.mark.parametrize(("eps", "step"), [(0.05, 0), (0.99, 0), (1.5, 1), (2.0, 2)])
def test_an_attacked_environment_shows_whole_numbers_within_eps(space, eps, step):
    true = np.array([1, 0, 1, 1])
    weight = np.array([[1.0, 2, -3, 0.5], [-1.0, 1, 1, 2]])
    env = shown(space, true)
    bias = np.array([0.0, (weight[0] - weight[1]) @ true - 0.1])  # the first is preferred by 0.1
    attacked = attack_policy(linear(weight, bias), env, eps, solver=Fgsm())
    seen = attacked.reset()
    assert seen.dtype == space.dtype
    np.testing.assert_array_equal(seen[0], true + step * np.sign(weight[1] - weight[0]))


def test_an_attacked_environment_has_nothing_to_report_before_an_episode_is_over():
    env = attack_policy(relu_ppo(), make_vec_env("CartPole-v1", 1), solver=QUICK)
    with pytest.raises(InputError, match="no episode is over yet"):
        env.report()
    env.reset()
    with pytest.raises(InputError, match="no episode is over yet"):
        env.report()


def test_environments_of_gymnasium_cannot_be_wrapped():
    env = gymnasium.make_vec("CartPole-v1", 2)
    with pytest.raises(InputError, match="env must be a VecEnv of Stable-Baselines3"):
        attack_policy(relu_ppo(), env)


def test_what_cannot_be_played_is_said_in_words():
    agent = relu_ppo()
    with pytest.raises(InputError, match="several environments side by side: a VecEnv of Stable"):
        play(agent, gymnasium.make("CartPole-v1"), 1)
    with pytest.raises(InputError, match="a whole number, at least 1; it is 0"):
        play(agent, make_vec_env("CartPole-v1"), 0)


def test_a_plain_module_is_a_policy():
    policy = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    env = make_vec_env("CartPole-v1", 2)
    assert len(play(policy.eval(), env, 3, attack=Auto(evaluations=5), eps=0.1).returns) == 3
