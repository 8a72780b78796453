"""Weights of policies, and the records beside them."""

import json
from dataclasses import asdict, replace

import pytest
import torch
from bright_halves import BrightHalves
from test_policy_training import TINY, weights

from facetwalk import InputError
from facetwalk.digests import digest
from facetwalk.training.policies import fitting, make_policy
from facetwalk.training.policies.__main__ import main
from facetwalk.zoo import impala_policy


def made(path, recipe=TINY, **settings):
    return make_policy(recipe, path, episodes=4, games=BrightHalves, **settings)


def test_weights_are_those_of_the_training(tmp_path):
    path = tmp_path / "new" / "Halves_ppo.pt"
    record = made(path, command="typed")
    trained = fitting.train_policy(TINY, BrightHalves(TINY.game, TINY.envs, 3, TINY.seed))
    loaded = impala_policy(path)
    assert all(torch.equal(v, loaded.state_dict()[k]) for k, v in trained.net.state_dict().items())
    assert json.loads(path.with_suffix(".json").read_text()) == record
    assert record["training"] == asdict(TINY)
    assert (record["steps"], record["command"]) == (48, "typed")
    assert record["weights_digest"] == digest(loaded.state_dict().values())
    assert {path.name for path in path.parent.iterdir()} == {"Halves_ppo.pt", "Halves_ppo.json"}


def test_weights_may_be_safetensors(tmp_path):
    made(tmp_path / "a.pt")
    made(tmp_path / "a.safetensors")
    expected, found = (impala_policy(tmp_path / f"a.{kind}") for kind in ("pt", "safetensors"))
    x = torch.rand(2, 3, 64, 64)
    assert torch.equal(found(x), expected(x))


def test_policies_are_measured_on_the_levels_of_training_and_on_all_others(tmp_path):
    asked = []

    def games(*args, **more):
        asked.append((*args, more))
        return BrightHalves(*args, **more)

    record = make_policy(TINY, tmp_path / "a.pt", episodes=6, games=games)
    assert asked == [
        ("halves", 4, 3, 0, {}),
        *[("halves", 6, 3, 1, {"first": 0})] * 2,
        *[("halves", 6, 0, 1, {"first": 3})] * 2,
    ]
    assert record["fresh_levels"]["drawn"]["episodes"] == 6
    assert 0 <= record["train_levels"]["most_likely"]["mean_return"] <= 10


def test_a_finished_policy_is_not_made_again_and_an_unfinished_one_goes_on(tmp_path, monkeypatch):
    path = tmp_path / "a.pt"
    assert made(path, minutes=-1)["steps"] == 0
    assert path.with_suffix(".checkpoint").exists()
    whole = made(path)
    assert whole["steps"] == 48
    monkeypatch.setattr(fitting.Learner, "update", None)
    assert made(path) == whole
    with pytest.raises(InputError, match=r"a\.json is of another training \(seed 0 and not 1\)"):
        made(path, replace(TINY, seed=1))


def test_a_policy_can_be_made_anew(tmp_path):
    path = tmp_path / "a.pt"
    made(path)
    made(path, replace(TINY, seed=1), restart=True)
    other = fitting.train_policy(replace(TINY, seed=1), BrightHalves("halves", 4, 3, 1))
    saved = torch.cat([value.flatten() for value in impala_policy(path).state_dict().values()])
    assert torch.equal(saved, weights(other))
    path.with_suffix(".json").write_text("[]")
    with pytest.raises(InputError, match="is no record of a training: add --restart"):
        made(path)


def test_a_missing_extra_is_said_on_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "procgen", None)
    with pytest.raises(SystemExit) as stopped:
        main(["--out", str(tmp_path / "a.pt")])
    assert stopped.value.code == 2
    assert capsys.readouterr().err == (
        "error: Procgen needs an optional dependency: pip install 'facetwalk[procgen]'\n"
    )
