"""The policies of Procgen's games: layout, and the published weights."""

import json
import os
from importlib import resources
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from facetwalk import InputError
from facetwalk.control import play
from facetwalk.control.environments import procgen
from facetwalk.digests import digest
from facetwalk.zoo import ImpalaPolicy, coinrun_policy, impala_policy

WEIGHTS = resources.files("facetwalk.zoo").joinpath("weights")
PUBLISHED = Path(os.environ.get("FACETWALK_DATA", "../shared/data")) / "procgen"


def by_hand(weights, x):
    """The network written out: the published weights in the order in which they are used."""

    def conv(name, x):
        return F.conv2d(x, weights[f"{name}.weight"], weights[f"{name}.bias"], padding=1)

    for first in (0, 4, 8):
        x = F.max_pool2d(conv(f"model.{first}", x), 3, 2, 1)
        for block in (first + 2, first + 3):
            y = conv(f"model.{block}.model.1", x.relu())
            x = x + conv(f"model.{block}.model.3", y.relu())
    x = F.linear(x.flatten(1).relu(), weights["model.14.weight"], weights["model.14.bias"]).relu()
    return F.linear(x, weights["logits_fc.weight"], weights["logits_fc.bias"])[:, :15]


@pytest.mark.parametrize(
    "name",
    ["FruitBot_ppo", "FruitBot_radial_ppo", "AT_PPO_FruitBot", "Jumper_ppo", "AT_PPO_Jumper"],
)
def test_published_policies_load_exactly(name):
    path = PUBLISHED / f"{name}.pt"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    policy, weights = impala_policy(path), torch.load(path, "cpu", weights_only=True)
    assert policy.state_dict().keys() == weights.keys()
    assert all(torch.equal(value, weights[key]) for key, value in policy.state_dict().items())
    x = torch.rand(2, 3, 64, 64)
    torch.testing.assert_close(policy(x), by_hand(weights, x))


def test_other_weights_are_refused(tmp_path):
    weights = ImpalaPolicy(7).state_dict()
    torch.save(weights, tmp_path / "seven.pt")
    assert impala_policy(tmp_path / "seven.pt")(torch.zeros(1, 3, 64, 64)).shape == (1, 7)
    torch.save({**weights, "model.0.bias": torch.zeros(3)}, tmp_path / "odd.pt")
    with pytest.raises(InputError, match=r"model.0.bias is \(3,\), not \(16,\)"):
        impala_policy(tmp_path / "odd.pt")
    for other in ({"weight": torch.zeros(3)}, {"logits_fc.bias": torch.tensor(1.0)}):
        torch.save(other, tmp_path / "other.pt")
        with pytest.raises(InputError, match=r"holds no policy: logits_fc\.bias is missing"):
            impala_policy(tmp_path / "other.pt")


def test_to_load_one_draws_no_random_numbers(tmp_path):
    torch.save(ImpalaPolicy(7).state_dict(), tmp_path / "seven.pt")
    before = torch.get_rng_state()
    impala_policy(tmp_path / "seven.pt")
    assert torch.equal(torch.get_rng_state(), before)


def test_the_policy_that_ships_is_the_one_of_its_record():
    file, record = (WEIGHTS.joinpath(f"coinrun-ppo.{end}") for end in ("safetensors", "json"))
    assert len(file.read_bytes()) < 3_000_000
    before = torch.get_rng_state()
    policy = coinrun_policy()
    assert torch.equal(torch.get_rng_state(), before)
    assert not policy.training
    made = json.loads(record.read_text())
    assert digest(policy.state_dict().values()) == made["weights_digest"]
    assert made["training"]["game"] == "coinrun"


@pytest.mark.usefixtures("procgen_is_there")
def test_the_policy_that_ships_plays_far_better_than_chance():
    """An episode gives 10 where the coin is reached."""
    policy = coinrun_policy()
    indifferent = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 64 * 64, 15)).eval()
    for parameter in indifferent.parameters():
        torch.nn.init.zeros_(parameter)
    played, chance = (
        play(player, procgen("coinrun", 40), 40, deterministic=False)
        for player in (policy, indifferent)
    )
    assert played.mean >= 7 >= 2 + chance.mean
