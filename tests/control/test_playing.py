"""Episodes of policies, attacked or not, beside a loop written by hand."""

import gymnasium
import numpy as np
import pytest
import torch
from policies import relu_ppo
from stable_baselines3.common.env_util import make_vec_env

from facetwalk import InputError
from facetwalk.control import play
from facetwalk.solvers import Auto, Sign

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


class Indifferent(torch.nn.Module):
    """Says of each observation that the second action is three times as likely."""

    def forward(self, x):
        return torch.tensor([0.25, 0.75]).log().expand(len(x), 2) + 0 * x[:, :1]


@pytest.mark.parametrize("attack", [None, QUICK], ids=["plain", "attacked"])
@pytest.mark.filterwarnings("ignore:.*no ReLU")
def test_actions_are_drawn_by_their_probabilities(attack):
    def drawn(seed):
        actions = []
        play(
            Indifferent().eval(),
            gymnasium.make_vec("CartPole-v1", num_envs=4),
            60,
            deterministic=False,
            attack=attack,
            seed=seed,
            callback=lambda turn: actions.append(turn.actions),
        )
        return np.concatenate(actions)

    actions = drawn(0)
    assert abs(actions.mean() - 0.75) < 5 * (0.1875 / len(actions)) ** 0.5
    assert np.array_equal(actions, drawn(0))
    assert not np.array_equal(actions, drawn(1))


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
