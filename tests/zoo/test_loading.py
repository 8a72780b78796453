import sys
import warnings
from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pytest
import torch
from onnx import helper
from torch import nn

from facetwalk.types import InputError, ModelError
from facetwalk.zoo import digits_net, load_model, random_network, shipped_net

USER_FILE = """
from __future__ import annotations
import sys
from dataclasses import dataclass
import torch
from torch import nn

@dataclass
class Options:
    width: int = 5

def linear_first():
    return nn.Sequential(nn.Linear(3, Options().width), nn.Dropout(), nn.Linear(5, 1))

def conv_first():
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU())

def double():
    return nn.Linear(3, 2).double()

def without_parameters():
    return nn.ReLU()

def with_attribute():
    net = conv_first()
    net.input_shape = [1, 6, 6]
    return net

def with_wrong_attribute():
    net = conv_first()
    net.input_shape = "big"
    return net

def with_argument(width):
    return nn.Linear(width, 1)

def failing():
    raise KeyError("weights")

def leaving():
    sys.exit("usage: ...")

def a_list():
    return [nn.Linear(3, 1)]

a_number = 3
"""


@pytest.fixture
def user_file(tmp_path: Path) -> Path:
    path = tmp_path / "user_networks.py"
    path.write_text(USER_FILE)
    return path


def refused(spec: object, match: str, error: type[Exception] = InputError, **arguments) -> None:
    with pytest.raises(error, match=match) as caught:
        load_model(str(spec), **arguments)
    assert "\n" not in str(caught.value)


def same_network(one: nn.Module, other: nn.Module, shape: tuple[int, ...]) -> bool:
    x = torch.randn(4, *shape, generator=torch.Generator().manual_seed(0))
    return torch.equal(one(x), other(x))


def test_a_random_network_is_drawn_with_the_seed():
    loaded = load_model("random:10,64,64,1", seed=4)
    assert (loaded.input_shape, loaded.name) == ((10,), "random:10,64,64,1")
    assert same_network(loaded.model, random_network((10, 64, 64, 1), 4), (10,))
    assert not same_network(loaded.model, random_network((10, 64, 64, 1), 5), (10,))


def test_digits_is_the_shipped_network():
    loaded = load_model("digits", shape=(1, 8, 8))
    assert (loaded.input_shape, loaded.name) == ((1, 8, 8), "digits")
    assert same_network(loaded.model, digits_net(), (1, 8, 8))


def test_an_onnx_file_is_read(write_onnx):
    weight = np.eye(3, dtype=np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    path = write_onnx(nodes, {"w": weight}, ["N", 3], ["N", 3])
    for spec in (str(path), path):
        loaded = load_model(spec)
        assert (loaded.input_shape, loaded.name) == ((3,), "net")
    assert same_network(loaded.model, nn.Identity(), (3,))
    refused(path, r"takes inputs of shape \(3,\), not \(4,\)", shape=(4,))


def test_a_function_of_a_file_is_called(user_file):
    spec = f"{user_file}:linear_first"
    loaded = load_model(spec)
    assert (loaded.input_shape, loaded.name, loaded.dtype) == ((3,), spec, torch.float32)
    assert not any(part.training for part in loaded.model.modules())


def test_a_function_of_an_importable_module_is_called(user_file, monkeypatch):
    monkeypatch.syspath_prepend(user_file.parent)
    assert load_model("user_networks:linear_first").input_shape == (3,)
    del sys.modules["user_networks"]


def test_a_class_of_an_installed_package_is_called():
    assert load_model("facetwalk.zoo.digits:DigitsNet").input_shape == (1, 8, 8)


def test_the_shape_comes_from_the_argument_or_the_attribute(user_file):
    assert load_model(f"{user_file}:conv_first", shape=(1, 5, 5)).input_shape == (1, 5, 5)
    assert load_model(f"{user_file}:with_attribute").input_shape == (1, 6, 6)
    assert load_model(f"{user_file}:with_attribute", shape=(1, 6, 6)).input_shape == (1, 6, 6)
    assert load_model(f"{user_file}:linear_first", shape=(7, 3)).input_shape == (7, 3)
    assert load_model(f"{user_file}:without_parameters", shape=(2,)).input_shape == (2,)


def test_the_type_is_that_of_the_parameters(user_file):
    assert load_model(f"{user_file}:double").dtype == torch.float64


def test_what_is_loaded_cannot_be_reassigned():
    loaded = load_model("random:2,1")
    with pytest.raises(FrozenInstanceError):
        loaded.name = "other"  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("spec", [None, 3, nn.Linear(3, 1), b"digits"])
def test_what_is_no_name_is_refused(spec):
    with pytest.raises(InputError, match=f"a text or a path, not by a {type(spec).__name__}"):
        load_model(spec)


@pytest.mark.parametrize("spec", ["", "digit", "net.pt", "some/folder"])
def test_an_unknown_form_is_refused(spec):
    refused(spec, "names no network: use digits, mnist-cnn-0.3, mnist-cnn-0.2, .*random:10,64,64,1")


@pytest.mark.parametrize(
    ("name", "shape"), [("mnist-strided-0.3", (1, 28, 28)), ("cifar-cnn-8", (3, 32, 32))]
)
def test_robust_networks_go_by_their_names(name, shape):
    loaded = load_model(name)
    assert (loaded.input_shape, loaded.name) == (shape, name)
    x = torch.rand(2, *shape)
    torch.testing.assert_close(loaded.model(x), shipped_net(name)(x))


@pytest.mark.parametrize("sizes", ["", "10", "10,", "10,x,1", "10,2.5,1", "10,0,1", "10,-3,1"])
def test_sizes_that_make_no_network_are_refused(sizes):
    refused(f"random:{sizes}", "integers")


@pytest.mark.parametrize("shape", [(), (0,), (3, -1), (2.5,), "3"])
def test_a_shape_that_is_not_positive_integers_is_refused(shape):
    refused("random:3,1", "the given input shape must be", shape=shape)


@pytest.mark.parametrize("spec", ["digits", "random:3,1"])
def test_a_shape_that_contradicts_the_network_is_refused(spec):
    refused(spec, r"not \(4,\) as given", shape=(4,))


@pytest.mark.parametrize("place", ["no_such_module_here", "..relative", "", "nowhere/nets.py"])
def test_a_place_that_cannot_be_imported_is_refused(place):
    refused(f"{place}:net", "cannot be imported")


@pytest.mark.parametrize("content", ["def net(:", "1 / 0", "import sys; sys.exit()"])
def test_a_file_that_fails_is_refused(tmp_path, content):
    path = tmp_path / "broken.py"
    path.write_text(content)
    refused(f"{path}:net", "broken.py cannot be imported: (Syntax|ZeroDivision|SystemExit)")


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("nothing", "has no function named 'nothing'"),
        ("a_number", "has no function named 'a_number'"),
        ("", "has no function named ''"),
        ("with_argument", "called without arguments, failed with TypeError"),
        ("failing", "failed with KeyError: 'weights'"),
        ("leaving", "failed with SystemExit: usage"),
        ("a_list", r"returned a list, not a torch\.nn\.Module"),
        ("conv_first", "does not tell the shape of its input: pass it with --shape"),
        ("with_wrong_attribute", "the input_shape attribute of .* must be .*not 'big'"),
    ],
)
def test_a_function_that_gives_no_network_is_refused(user_file, name, match):
    refused(f"{user_file}:{name}", match)


@pytest.mark.parametrize(
    ("name", "shape", "match"),
    [
        ("linear_first", (4,), r"cannot take a batch of inputs of shape \(4,\)"),
        ("conv_first", (1, 2, 2), r"cannot take a batch of inputs of shape \(1, 2, 2\)"),
        ("with_attribute", (1, 5, 5), r"of shape \(1, 6, 6\), not \(1, 5, 5\) as given"),
    ],
)
def test_a_shape_that_does_not_fit_a_users_network_is_refused(user_file, name, shape, match):
    refused(f"{user_file}:{name}", match, shape=shape)


def test_torchscript_is_refused(user_file):
    with user_file.open("a") as file:
        file.write("\ndef scripted():\n    return nn.Sequential(torch.jit.script(nn.ReLU()))\n")
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        refused(f"{user_file}:scripted", "returned a TorchScript module", error=ModelError)
