import sys
from importlib import resources

import numpy as np
import pytest
import torch
from safetensors import safe_open
from sklearn.datasets import load_digits

from facetwalk.sites import discover
from facetwalk.types import InputError, MissingExtraError
from facetwalk.zoo import DigitsNet, digits, digits_net


def test_the_splits_share_no_image_and_hold_all_of_scikit_learns():
    parts = [digits("train"), digits("test")]
    assert [len(images) for images, _ in parts] == [1297, 500]
    images = torch.cat([images for images, _ in parts])
    labels = torch.cat([labels for _, labels in parts])
    assert images.shape == (1797, 1, 8, 8)
    assert images.dtype == torch.float32
    assert (images.min(), images.max()) == (0, 1)
    ours = np.column_stack([labels, images.reshape(1797, 64) * 16])
    data, target = load_digits(return_X_y=True)
    theirs = np.column_stack([target, data])
    assert sorted(ours.tolist()) == sorted(theirs.tolist())


def test_the_split_is_the_same_every_time_and_has_every_digit():
    images, labels = digits("test")
    again, _ = digits("test")
    assert torch.equal(images, again)
    assert labels.bincount(minlength=10).min() > 30


def test_an_unknown_split_is_refused():
    with pytest.raises(InputError, match="'train' and 'test', not 'validation'"):
        digits("validation")  # pyright: ignore[reportArgumentType]


def test_the_shipped_network_classifies_test_images():
    images, labels = digits("test")
    with torch.no_grad():
        correct = digits_net()(images).argmax(1) == labels
    assert correct.float().mean() >= 0.95


def test_the_network_holds_the_shipped_weights():
    file = resources.files("facetwalk.zoo").joinpath("digits_net.safetensors")
    net = digits_net()
    with resources.as_file(file) as path, safe_open(path, "np") as weights:
        assert path.stat().st_size < 3_000_000
        assert set(weights.keys()) == set(net.state_dict())
        for name, tensor in net.state_dict().items():
            np.testing.assert_array_equal(tensor.numpy(), weights.get_tensor(name))


def test_loading_gives_an_independent_network_in_eval_mode_and_draws_nothing():
    before = torch.get_rng_state()
    net, other = digits_net(), digits_net()
    assert torch.equal(torch.get_rng_state(), before)
    assert not any(part.training for part in net.modules())
    with torch.no_grad():
        net[0].weight.zero_()
    assert other[0].weight.any()


def test_its_sites_are_its_1600_relus():
    sites = discover(digits_net(), torch.zeros(1, *DigitsNet.input_shape))
    assert [site.shape for site in sites] == [(16, 8, 8), (32, 4, 4), (64,)]
    assert sites.neurons == 1600


def test_weights_without_safetensors_name_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    with pytest.raises(MissingExtraError, match=r"the digits network .*facetwalk\[demo\]"):
        digits_net()


def test_images_without_scikit_learn_name_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(MissingExtraError, match=r"the digits data .*facetwalk\[demo\]"):
        digits("test")
