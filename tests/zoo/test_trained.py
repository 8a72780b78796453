import json
import sys
from importlib import resources
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from facetwalk.types import InputError, MissingExtraError
from facetwalk.zoo import fresh_net, load_model, load_trained, shipped_net


@pytest.fixture
def written(tmp_path) -> Path:
    """A network as `facetwalk train` leaves it."""
    path = tmp_path / "mine-0.1.safetensors"
    save_file(fresh_net("cifar-resnet", 7).state_dict(), path)
    record = {"training": {"name": "mine-0.1", "architecture": "cifar-resnet"}}
    path.with_suffix(".json").write_text(json.dumps(record))
    return path


def refused(path: Path, match: str) -> None:
    with pytest.raises(InputError, match=match) as caught:
        load_trained(path)
    assert "\n" not in str(caught.value)


def test_weights_become_the_network_that_the_record_names(written):
    loaded = load_model(str(written))
    assert (loaded.name, loaded.input_shape) == ("mine-0.1", (3, 32, 32))
    assert not any(part.training for part in loaded.model.modules())
    x = torch.rand(2, 3, 32, 32)
    assert torch.equal(loaded.model(x), fresh_net("cifar-resnet", 7).eval()(x))


def test_the_shipped_files_load_too():
    name = "mnist-strided-0.3"
    file = resources.files("facetwalk.zoo").joinpath("weights", f"{name}.safetensors")
    x = torch.rand(2, 1, 28, 28)
    assert torch.equal(load_trained(str(file)).model(x), shipped_net(name)(x))


def test_files_that_are_missing_broken_or_do_not_fit_are_refused(written):
    record = written.with_suffix(".json")
    refused(written.with_name("other.safetensors"), "there is no file .*other.safetensors")
    for content in ("[]", "{", '{"training": {"name": "mine"}}', '{"training": 3}'):
        record.write_text(content)
        refused(written, "mine-0.1.json does not say which architecture mine-0.1.safetensors is of")
    record.write_text('{"training": {"architecture": "vgg"}}')
    refused(written, "'vgg' names no architecture")
    record.write_text('{"training": {"architecture": "cifar-cnn"}}')
    refused(written, "the weights do not fit this CifarCnn")
    written.write_bytes(b"nothing")
    refused(written, "mine-0.1.safetensors cannot be read as weights")
    record.unlink()
    refused(written, r"needs the record that facetwalk train wrote .*: put .*mine-0\.1\.json")


def test_without_safetensors_the_extra_is_named(written, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    with pytest.raises(MissingExtraError, match=r"a trained network .*facetwalk\[demo\]"):
        load_trained(written)
