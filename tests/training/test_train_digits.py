import sys

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Generator

from facetwalk.training import train_digits
from facetwalk.types import MissingExtraError
from facetwalk.zoo import DigitsNet, digits, digits_net


def fresh_net() -> DigitsNet:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return DigitsNet()


def test_one_epoch_on_few_images_lowers_the_loss():
    images, labels = (part[:256] for part in digits("train"))
    net = fresh_net()
    before = F.cross_entropy(net(images), labels)
    train_digits.train(net, images, labels, 1, Generator().manual_seed(0))
    assert F.cross_entropy(net(images), labels) < before - 0.01


def test_perturbed_images_stay_near_and_raise_the_loss():
    images, labels = digits("test")
    net = digits_net()
    perturbed = train_digits.perturb(net, images, labels, 0.1, 5, Generator().manual_seed(0))
    assert (perturbed - images).abs().max() <= 0.1 + 1e-6
    assert (perturbed >= 0).all()
    assert (perturbed <= 1).all()
    clean_loss = F.cross_entropy(net(images), labels, reduction="none")
    assert (F.cross_entropy(net(perturbed), labels, reduction="none") > clean_loss).all()


def test_attacking_the_shipped_network_is_neither_trivial_nor_hopeless():
    net = digits_net()
    assert train_digits.clean_accuracy(net) >= 0.95
    assert 0.3 <= train_digits.attack_success(net) <= 0.7


def test_the_seed_decides_the_network_and_the_global_generator_is_untouched(monkeypatch):
    monkeypatch.setattr(train_digits, "_EPOCHS", 1)
    before = torch.get_rng_state()
    nets = [train_digits.train_digits_net(seed) for seed in (0, 0, 1)]
    assert torch.equal(torch.get_rng_state(), before)
    assert not any(net.training for net in nets)
    first, same, other = (net(torch.zeros(1, 1, 8, 8)) for net in nets)
    assert torch.equal(first, same)
    assert not torch.equal(first, other)


def test_the_command_writes_the_weights_and_reports(monkeypatch, tmp_path, capsys):
    net = fresh_net()
    monkeypatch.setattr(train_digits, "train_digits_net", lambda seed: net)
    monkeypatch.setattr(train_digits, "attack_success", lambda net: 0.5)
    train_digits.main(tmp_path)
    written = load_file(tmp_path / "digits_net.safetensors")
    assert all(torch.equal(written[name], value) for name, value in net.state_dict().items())
    assert "attack success at radius 0.2: 50.0%" in capsys.readouterr().out


def test_the_command_without_safetensors_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    with pytest.raises(MissingExtraError, match=r"facetwalk\[demo\]"):
        train_digits.main()
