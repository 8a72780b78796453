"""Environments of gymnasium, however they begin again, beside the generator that they draw from."""

from itertools import chain

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.utils.seeding import np_random
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorWrapper
from stable_baselines3.common.vec_env import DummyVecEnv

from facetwalk import InputError
from facetwalk.control import play
from facetwalk.solvers import Fgsm

COUNT, SEED = 3, 7


class Countdown(gymnasium.Env):
    """An episode of one to five steps, each worth 1, that sees how many are left."""

    observation_space = gymnasium.spaces.Box(0, 5, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = int(self.np_random.integers(1, 6))
        return self._seen(), {}

    def step(self, action):
        self.left -= 1
        return self._seen(), 1.0, self.left == 0, False, {}

    def _seen(self):
        return np.array([self.left], dtype=np.float32)


class Unnamed(VectorWrapper):
    """Names no mode, as gymnasium 1.0 did."""

    @property
    def metadata(self):
        return {key: value for key, value in super().metadata.items() if key != "autoreset_mode"}


def vector(mode):
    return SyncVectorEnv([Countdown] * COUNT, autoreset_mode=mode)


MAKERS = {
    "next step": lambda: vector(AutoresetMode.NEXT_STEP),
    "same step": lambda: vector(AutoresetMode.SAME_STEP),
    "no mode": lambda: Unnamed(vector(AutoresetMode.NEXT_STEP)),
    "processes": lambda: AsyncVectorEnv([Countdown] * COUNT),
    "Stable-Baselines3": lambda: DummyVecEnv([Countdown] * COUNT),
}


def drawn(episodes):
    """The lengths of the first episodes of each environment, from its generator alone."""
    shares = [len(range(number, episodes, COUNT)) for number in range(COUNT)]
    return [np_random(SEED + i)[0].integers(1, 6, n).tolist() for i, n in enumerate(shares)]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("attack", [None, Fgsm()], ids=["plain", "attacked"])
@pytest.mark.parametrize("maker", MAKERS)
def test_only_steps_of_episodes_count_and_are_decided(maker, attack):
    env, turns = MAKERS[maker](), []
    played = play(
        torch.nn.Linear(1, 2).eval(), env, 11, attack=attack, seed=SEED, callback=turns.append
    )
    env.close()
    expected = drawn(11)
    assert sorted(played.lengths) == sorted(chain(*expected))
    assert played.returns.tolist() == played.lengths.tolist()
    decided = np.concatenate([turn.environments for turn in turns])
    assert np.bincount(decided).tolist() == [sum(lengths) for lengths in expected]
    assert min(turn.observations.min() for turn in turns) == 1  # none is asked after its end
    if attack is not None:
        flips = np.concatenate([turn.attacked.flipped.numpy() for turn in turns])
        assert played.flipped == flips.mean()


def test_the_environments_of_a_vectorised_game_last_as_many_steps_as_they_are_worth():
    env = gymnasium.make_vec("CartPole-v1", 2)
    played = play(torch.nn.Linear(4, 2).eval(), env, 8)
    assert played.lengths.tolist() == played.returns.tolist()


def test_environments_that_do_not_begin_again_are_refused():
    with pytest.raises(InputError, match="with the autoreset_mode NEXT_STEP or SAME_STEP"):
        play(torch.nn.Linear(1, 2).eval(), vector(AutoresetMode.DISABLED), 2)


def test_environments_that_begin_again_as_they_did_before_1_0_are_refused(monkeypatch):
    env = gymnasium.make_vec("CartPole-v1", 2)
    monkeypatch.setattr(gymnasium, "__version__", "0.29.1")
    with pytest.raises(InputError, match=r"gymnasium 0\.29\.1 side by side .* 'gymnasium>=1\.0'"):
        play(torch.nn.Linear(4, 2).eval(), env, 1)
