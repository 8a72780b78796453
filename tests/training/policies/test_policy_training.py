"""PPO on a game without Procgen: it learns, and an interruption changes nothing."""

from dataclasses import replace

import pytest
import torch
from bright_halves import LENGTH, BrightHalves

from facetwalk import InputError
from facetwalk.control import play
from facetwalk.training import Checkpoint
from facetwalk.training.policies import PolicyRecipe, fitting
from facetwalk.training.policies.fitting import train_policy

TINY = PolicyRecipe(
    game="halves", levels=3, steps=48, envs=4, rollout=16, minibatches=2, epochs=1, gamma=0.5
)


def games(recipe, seed=0):
    return BrightHalves(recipe.game, recipe.envs, recipe.levels, seed)


def weights(trained):
    return torch.cat([value.flatten() for value in trained.net.state_dict().values()])


def test_a_policy_learns_which_half_is_bright():
    recipe = replace(
        TINY, steps=640, envs=8, rollout=128, minibatches=4, epochs=2, learning_rate=1e-3
    )
    trained = train_policy(recipe, games(recipe))
    assert trained.history[0]["episode_return"] < 0.7 * LENGTH
    played = play(trained.net, BrightHalves("halves", 20, 3, seed=1), 20)
    assert played.mean > 0.9 * LENGTH
    assert (trained.steps, trained.history[-1]["steps"]) == (640, 640)


def test_an_interrupted_training_ends_as_one_that_was_not(tmp_path, monkeypatch):
    recipe = replace(TINY, steps=80)
    whole = train_policy(recipe, games(recipe))
    checkpoint = Checkpoint(tmp_path / "halves.checkpoint", {})
    monkeypatch.setattr(fitting, "_SECONDS_BETWEEN_SAVES", 0.0)
    update, updates = fitting.Learner.update, []

    def killed(learner):
        if len(updates) == 3:  # the first episodes are over
            raise KeyboardInterrupt
        updates.append(learner.steps)
        update(learner)

    monkeypatch.setattr(fitting.Learner, "update", killed)
    with pytest.raises(KeyboardInterrupt):
        train_policy(recipe, games(recipe), checkpoint=checkpoint)
    monkeypatch.setattr(fitting.Learner, "update", update)
    resumed = train_policy(recipe, games(recipe, seed=9), checkpoint=checkpoint)
    assert torch.equal(weights(resumed), weights(whole))
    assert resumed.history == whole.history
    another = train_policy(replace(recipe, seed=1), games(recipe))
    assert not torch.equal(weights(another), weights(whole))


def test_a_policy_cools_at_the_end_of_its_training():
    recipe = replace(TINY, cooling=0.75)
    learner = fitting.Learner(recipe, games(recipe), "cpu")
    optimizer, seen = learner.agent.policy.optimizer, []
    while learner.steps < recipe.steps:
        learner.update()
        seen.append((learner.agent.ent_coef, optimizer.param_groups[0]["lr"]))
    for (entropy, rate), share in zip(seen, (1, 32 / 36, 16 / 36), strict=True):
        assert entropy == pytest.approx(share * recipe.entropy)
        assert rate == pytest.approx(share * recipe.learning_rate)


def test_the_time_may_be_over_before_the_steps_are(tmp_path):
    checkpoint = Checkpoint(tmp_path / "halves.checkpoint", {})
    none = train_policy(TINY, games(TINY), minutes=-1, checkpoint=checkpoint)
    assert none.steps == 0
    later = train_policy(TINY, games(TINY), checkpoint=checkpoint)
    assert torch.equal(weights(later), weights(train_policy(TINY, games(TINY))))


def test_random_numbers_of_others_are_left_alone():
    torch.manual_seed(1)
    expected = torch.rand(1)
    torch.manual_seed(1)
    train_policy(replace(TINY, steps=16), games(TINY))
    assert torch.equal(torch.rand(1), expected)


def test_progress_ends_at_the_whole_though_the_last_rollout_goes_farther():
    told = []
    asked = replace(TINY, steps=40)
    trained = train_policy(asked, games(asked), report=lambda share, words: told.append(share))
    assert trained.steps == 48
    assert told == [16 / 40, 32 / 40, 1]


def test_what_cannot_be_trained_is_said_in_words():
    with pytest.raises(InputError, match="envs must be at least 1; it is 0"):
        PolicyRecipe(game="coinrun", envs=0)
    with pytest.raises(InputError, match="16384 steps cannot be divided evenly among 48 envs"):
        PolicyRecipe(game="coinrun", envs=48)
    with pytest.raises(InputError, match=r"cooling must be a share in \[0, 1\]; it is 60"):
        PolicyRecipe(game="coinrun", cooling=60)
    message = "steps must be at least those of a rollout, 16384, and they are 512: ask for more"
    with pytest.raises(InputError, match=message):
        PolicyRecipe(game="coinrun", envs=4, steps=512)
