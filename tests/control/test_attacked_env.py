"""Environments as an attack shows them, beside play under attack and accounts kept by hand."""

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, MultiBinary
from gymnasium.vector import AutoresetMode
from policies import Pictures, image_ppo, linear, relu_ppo, shown
from stable_baselines3.common.env_util import make_vec_env

from facetwalk import InputError
from facetwalk.control import attack_policy, play
from facetwalk.solvers import Fgsm, Sign

QUICK = Sign(steps=3)


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


def played_by_hand(kind):
    """An attacked episode of CartPole in environments of a kind."""
    agent, over = relu_ppo(), False
    if kind == "VecEnv":
        env = attack_policy(agent, make_vec_env("CartPole-v1", 1), 0.3, solver=QUICK)
        env.seed(7)
        seen = env.reset()
    elif kind == "Env":
        env = attack_policy(agent, gymnasium.make("CartPole-v1"), 0.3, solver=QUICK)
        seen, _ = env.reset(seed=7)
    else:
        env = attack_policy(agent, gymnasium.make_vec("CartPole-v1", 1), 0.3, solver=QUICK)
        seen, _ = env.reset(seed=7)
    while not over:
        actions, _ = agent.predict(seen, deterministic=True)
        if kind == "VecEnv":
            seen, _, (over,), _ = env.step(actions)
        else:
            seen, _, ended, cut, _ = env.step(actions)
            over = bool(ended or cut)
    return env.report()


@pytest.mark.parametrize("kind", ["VecEnv", "VectorEnv", "Env"])
def test_an_attacked_environment_is_what_playing_under_attack_is(kind):
    by_hand = played_by_hand(kind)
    env = make_vec_env("CartPole-v1", 1)
    played = play(relu_ppo(), env, 1, attack=QUICK, eps=0.3, seed=7)
    assert by_hand.returns.tolist() == played.returns.tolist()
    assert by_hand.lengths.tolist() == played.lengths.tolist()
    assert by_hand.seconds_per_step > 0


def cart_poles(count, mode):
    modes = {"autoreset_mode": AutoresetMode(mode)}
    return gymnasium.make_vec("CartPole-v1", count, "sync", vector_kwargs=modes)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_steps_that_only_begin_an_episode_count_for_nothing(mode):
    attacked, finished = attack_policy(relu_ppo(), cart_poles(3, mode), 0.1, solver=QUICK), []
    attacked.reset(seed=7)
    lengths, waits = np.zeros(3, dtype=int), np.zeros(3, dtype=bool)
    for _ in range(30):
        _, _, ended, cut, _ = attacked.step(np.zeros(3, dtype=int))
        lengths += ~waits
        over = ended | cut
        finished += lengths[over].tolist()
        lengths[over] = 0
        waits = over & (mode == "NextStep")
    report = attacked.report()
    assert len(finished) > 6
    assert report.lengths.tolist() == finished == report.returns.tolist()


def test_environments_of_gymnasium_that_begin_again_when_told_are_attacked():
    env = cart_poles(2, "Disabled")
    attacked = attack_policy(relu_ppo(), env, 0.1, solver=Fgsm())
    attacked.reset(seed=7)
    for _ in range(3):
        attacked.step(np.array([0, 1]))
    attacked.reset(options={"reset_mask": np.array([True, False])})
    over = np.zeros(2, dtype=bool)
    steps = 0
    while not over[1]:
        _, _, over, _, _ = attacked.step(np.array([steps % 2, 1]))
        steps += 1
    assert attacked.report().lengths.tolist() == [3 + steps]


class Lights:
    """Environments as gym3 has them: images that say which action is rewarded, three steps each."""

    num, ob_space, ac_space = 2, None, None

    def __init__(self):
        self.steps, self.rewards = 0, np.zeros(2)

    def observe(self):
        images = np.full((2, 2, 2, 3), 100, dtype=np.uint8)
        images[0, :, :, 0] += 1
        images[1, :, :, 1] += 1
        return self.rewards, {"rgb": images}, np.full(2, self.steps % 3 == 0)

    def act(self, ac):
        self.steps, self.rewards = self.steps + 1, (ac == np.array([0, 1])).astype(float)


def test_environments_of_gym3_show_attacked_images_with_channels_last():
    pytest.importorskip("gym3", reason="gym3 is not installed")
    weight = torch.zeros(2, 3, 2, 2)
    weight[0, 0] = weight[1, 1] = 1
    policy = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 2)).eval()
    policy[1].weight.data, policy[1].bias.data = weight.flatten(1), torch.zeros(2)
    env = attack_policy(policy, Lights(), 3 / 255, solver=Fgsm())
    for _ in range(6):
        _, seen, _ = env.observe()
        image = torch.from_numpy(seen["rgb"]).permute(0, 3, 1, 2)
        env.act(policy(image / 255).argmax(1).numpy())
    assert seen["rgb"].shape == (2, 2, 2, 3)
    assert seen["rgb"][0, 0, 0].tolist() == [98, 103, 100]  # 101, 100, 100 before
    assert env.observe() is env.observe()
    report = env.report()
    assert report.returns.tolist() == [0] * 4
    assert report.lengths.tolist() == [3] * 4
    assert report.flipped == 1


def test_what_is_no_environment_cannot_be_attacked():
    with pytest.raises(InputError, match="env must be a VecEnv of Stable-Baselines3, an enviro"):
        attack_policy(relu_ppo(), "CartPole-v1")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"eps": -1}, "eps must be a finite number, not negative; it is -1"),
        ({"eps": float("inf")}, "eps must be a finite number, not negative; it is inf"),
        ({"eps": "3/255"}, "eps must be a finite number, not negative; it is '3/255'"),
        ({"aim": "x"}, "aim must be one of away, worst, costly; it is 'x'"),
        ({"solver": "pgd"}, "the solver must be one of facetwalk.solvers, made; it is 'pgd'"),
    ],
)
def test_what_no_attack_can_have_is_refused_before_a_step(settings, message):
    env = make_vec_env("CartPole-v1", 1)
    with pytest.raises(InputError, match=message):
        attack_policy(relu_ppo(), env, **settings)
    asked = {"attack": settings.get("solver", QUICK), "eps": 0.1, "aim": "away"}
    env.reset = None  # not even begun
    with pytest.raises(InputError, match=message):
        play(relu_ppo(), env, 1, **{name: settings.get(name, asked[name]) for name in asked})


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
