"""What PPO is given in the place of Stable-Baselines3's own parts, beside those."""

import numpy as np
import torch
from bright_halves import BrightHalves
from gymnasium.spaces import Box, Discrete
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer

from facetwalk.control.policies import logits_of
from facetwalk.training.policies.features import ImpalaFeatures, as_impala
from facetwalk.training.policies.games import Gym3VecEnv
from facetwalk.training.policies.rollouts import DeviceRollouts

SPACES = Box(0, 255, (3, 6, 5), dtype=np.uint8), Discrete(4)


def filled(kind):
    """Three steps of two environments."""
    random = np.random.default_rng(0)
    buffer = kind(3, *SPACES, device="cpu", n_envs=2, gamma=0.9, gae_lambda=0.8)
    for _ in range(3):
        buffer.add(
            random.integers(0, 256, (2, 6, 5, 3), dtype=np.uint8).transpose(0, 3, 1, 2),
            random.integers(0, 4, 2),
            random.normal(size=2),
            random.random(2) < 0.3,
            torch.from_numpy(random.normal(size=(2, 1))),
            torch.from_numpy(random.normal(size=2)),
        )
    buffer.compute_returns_and_advantage(torch.ones(2, 1), np.array([True, False]))
    return buffer


def rows(buffer, batch):
    """All steps, in an order of their own."""
    torch.manual_seed(0)
    samples = list(buffer.get(batch))
    parts = [torch.cat([s[part].reshape(len(s.actions), -1) for s in samples]) for part in range(6)]
    whole = torch.cat([part.double() for part in parts], 1)
    return whole[whole[:, 0].argsort()], [len(sample.actions) for sample in samples]


def test_rollouts_hold_what_stable_baselines3s_own_hold():
    ours, theirs = filled(DeviceRollouts), filled(RolloutBuffer)
    assert next(ours.get(2)).observations.dtype == torch.uint8
    ours_rows, sizes = rows(ours, 4)
    theirs_rows, _ = rows(theirs, 4)
    assert sizes == [4, 2]
    assert torch.equal(ours_rows, theirs_rows)
    assert ours.observations.nbytes == 0
    assert ours.images.is_contiguous(memory_format=torch.channels_last)


def test_batches_differ_from_epoch_to_epoch():
    buffer = filled(DeviceRollouts)
    first, second = (next(buffer.get()).old_log_prob for _ in range(2))
    assert not torch.equal(first, second)
    assert torch.equal(first.sort().values, second.sort().values)


def test_games_are_stepped_as_gym3_steps_them():
    games, same = (BrightHalves("halves", 3, 1, seed=0) for _ in range(2))
    env = Gym3VecEnv(games)
    seen = env.reset()
    assert (seen.shape, seen.dtype) == ((3, 3, 64, 64), np.uint8)
    assert env.observation_space.contains(seen[0])
    for step in range(10):
        actions = np.array([0, 1, step % 2])
        seen, rewards, over, _ = env.step(actions)
        same.act(actions.astype(np.int32))
        expected = same.observe()
        np.testing.assert_array_equal(seen, expected[1]["rgb"].transpose(0, 3, 1, 2))
        np.testing.assert_array_equal(rewards, expected[0])
        np.testing.assert_array_equal(over, expected[2])
    assert over.all()
    env.close()
    assert games.closed


def test_the_network_that_is_saved_acts_as_the_one_that_was_trained():
    env = Gym3VecEnv(BrightHalves("halves", 2, 1, seed=0))
    settings = {
        "features_extractor_class": ImpalaFeatures,
        "features_extractor_kwargs": {"precision": "full"},
        "net_arch": [],
        "ortho_init": False,
    }
    agent = PPO("CnnPolicy", env, n_steps=4, batch_size=4, policy_kwargs=settings, seed=0)
    seen = np.random.default_rng(0).integers(0, 256, (5, 3, 64, 64), dtype=np.uint8)
    x = torch.from_numpy(seen)
    net = as_impala(agent.policy)
    with torch.no_grad():
        torch.testing.assert_close(net(x / 255), logits_of(agent)(x / 255))
        values = net.model(x / 255)[:, -1:]
        torch.testing.assert_close(values, agent.policy.predict_values(x))
    assert not net.training


def test_images_in_parts_have_the_features_of_all_at_once(monkeypatch):
    torch.manual_seed(0)
    seen = torch.rand(5, 3, 64, 64)
    features = ImpalaFeatures(Box(0, 255, (3, 64, 64), dtype=np.uint8), "full")
    whole = features(seen)
    monkeypatch.setattr("facetwalk.training.policies.features._FITS_CACHES", 2)
    torch.testing.assert_close(features(seen), whole)


def test_rounded_features_are_near_the_exact_ones():
    space = Box(0, 255, (3, 64, 64), dtype=np.uint8)
    exact, rounded = (ImpalaFeatures(space, precision) for precision in ("full", "bf16"))
    rounded.load_state_dict(exact.state_dict())
    seen = torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        expected, found = exact(seen), rounded(seen)
    assert found.dtype == torch.float32
    assert not torch.equal(found, expected)
    torch.testing.assert_close(found, expected, rtol=0.05, atol=0.02 * expected.max().item())
