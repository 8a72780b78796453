import sys
from importlib import resources
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from facetwalk.sites import discover
from facetwalk.types import InputError, MissingExtraError, ModelError
from facetwalk.zoo import fresh_net, shipped
from facetwalk.zoo.shipped import BY_NAME, shipped_net

WEIGHTS = resources.files("facetwalk.zoo").joinpath("weights")
NEURONS = {
    "mnist-cnn-0.3": 8_396,
    "mnist-cnn-0.2": 8_396,
    "mnist-strided-0.3": 4_804,
    "cifar-cnn-8": 32 * 32**2 + 2 * 64 * 16**2 + 128 * 8**2 + 128 * 4**2 + 128,
    "cifar-resnet-8": 3 * 32 * 32**2 + 2 * 64 * 16**2 + 2 * 128 * 8**2,
    "mnist-natural": 8_396,
    "mnist-fgsm": 8_396,
    "mnist-pgd": 8_396,
}
SHAPES = {name: (1, 28, 28) if "mnist" in name else (3, 32, 32) for name in NEURONS}

each_network = pytest.mark.parametrize("name", BY_NAME)


@pytest.fixture
def package(tmp_path: Path, monkeypatch) -> Path:
    """A folder in place of the package's own, without weights."""
    monkeypatch.setattr(shipped.resources, "files", lambda package: tmp_path)
    return tmp_path


@each_network
def test_each_network_is_small_and_gives_ten_logits(name: str):
    net = fresh_net(BY_NAME[name]).eval()
    assert sum(value.numel() for value in net.state_dict().values()) < 700_000
    assert net.input_shape == SHAPES[name]
    assert net(torch.rand(2, *SHAPES[name])).shape == (2, 10)


@each_network
def test_the_sites_of_each_network_are_its_relus(name: str):
    net = fresh_net(BY_NAME[name]).eval()
    assert discover(net, torch.rand(1, *SHAPES[name])).neurons == NEURONS[name]


def test_the_names_are_known():
    assert list(BY_NAME) == list(NEURONS)


@each_network
def test_weights_are_read_from_the_package(name: str, package: Path):
    saved = fresh_net(BY_NAME[name])
    (package / "weights").mkdir()
    save_file(saved.state_dict(), package / "weights" / f"{name}.safetensors")
    before = torch.get_rng_state()
    net = shipped_net(name)
    assert torch.equal(torch.get_rng_state(), before)
    assert not any(part.training for part in net.modules())
    x = torch.rand(2, *SHAPES[name])
    assert torch.equal(net(x), saved.eval()(x))


@each_network
def test_shipped_weights_load(name: str):
    assert len(WEIGHTS.joinpath(f"{name}.safetensors").read_bytes()) < 3_000_000
    logits = shipped_net(name)(torch.rand(2, *SHAPES[name]))
    assert logits.isfinite().all()


def test_absent_weights_say_how_to_make_them(package: Path):
    with pytest.raises(ModelError) as caught:
        shipped_net("cifar-cnn-8")
    folder = package / "weights"
    assert str(caught.value) == (
        f"there are no weights of cifar-cnn-8 in {folder}: make them with "
        f"facetwalk train cifar-cnn-8 --data FOLDER --out {folder}"
    )


def test_an_unknown_name_is_refused():
    with pytest.raises(
        InputError, match="'cifar' names no network that ships: use one of mnist-cnn"
    ):
        shipped_net("cifar")


def test_weights_without_safetensors_name_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    with pytest.raises(MissingExtraError, match=r"a network that ships .*facetwalk\[demo\]"):
        shipped_net("cifar-cnn-8")
