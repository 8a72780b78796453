import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from data_files import idx, write_mnist

from facetwalk.training import RECIPES

SMALL = ("--epochs", 1, "--budget", 5, "--quiet")


@pytest.fixture
def data(tmp_path) -> Path:
    """Forty dark zeros and bright ones in MNIST's own files."""
    labels = np.arange(40, dtype=np.uint8) % 2
    noise = np.random.default_rng(0).integers(50, size=(40, 28, 28), dtype=np.uint8)
    images = noise + 150 * labels[:, None, None]
    for prefix in ("train", "t10k"):
        write_mnist(tmp_path / "data", prefix, idx(images), idx(labels), zipped=True)
    return tmp_path / "data"


@pytest.fixture(autouse=True)
def short_attacks(monkeypatch) -> None:
    monkeypatch.setattr("facetwalk.training.measuring._PGD_STEPS", 2)


def test_recipes_are_listed(run):
    printed = run("train", "--list")
    assert all(re.search(rf"^{re.escape(name)} ", printed, re.MULTILINE) for name in RECIPES)
    assert max(map(len, printed.splitlines())) <= 80


def test_networks_are_trained_shown_and_loaded_by_evaluate(
    run, read_json, data, tmp_path, monkeypatch
):
    out = tmp_path / "out"
    monkeypatch.setattr(sys, "argv", ["facetwalk", "train", "two words"])
    names = ("mnist-natural", "mnist-strided-0.3")
    printed = run("train", *names, "--data", data, "--out", out, *SMALL, "--images", 30)
    assert f"Weights and records are in {out}." in printed
    for name in names:
        record = read_json(out / f"{name}.json")
        assert record["command"] == "facetwalk train 'two words'"
        assert (record["training"]["epochs"], record["training"]["images"]) == (1, 30)
        row = next(line for line in printed.splitlines() if line.startswith(name))
        assert len(row) <= 80
        for share in ("clean_accuracy", "robust_accuracy", "pgd_accuracy"):
            assert f"{record['test'][share]:.2%}" in row
    options = ("--data", "mnist", "--folder", data, "--eps", 0.3, "--samples", 5, "--budget", 5)
    said = run("evaluate", out / "mnist-strided-0.3.safetensors", *options)
    assert "mnist-strided-0.3 on mnist, test, 0 to 4" in said


def test_settings_take_the_place_of_a_recipes(run, read_json, data, tmp_path):
    changes = ("--method", "fgsm", "--architecture", "mnist-strided", "--eps", "1/10")
    more = ("--seed", 4, "--learning-rate", 0.01, "--name", "mine")
    run("train", "mnist-pgd", "--data", data, "--out", tmp_path, *SMALL, *changes, *more)
    training = read_json(tmp_path / "mine.json")["training"]
    expected = {
        "name": "mine",
        "method": "fgsm",
        "architecture": "mnist-strided",
        "radius": 0.1,
        "seed": 4,
        "learning_rate": 0.01,
    }
    assert training.items() >= expected.items()


def test_it_goes_on_where_it_was_and_begins_anew_when_told(run, refused, data, tmp_path):
    asked = ("train", "mnist-natural", "--data", data, "--out", tmp_path / "out", *SMALL)
    first = run(*asked)
    assert run(*asked) == first
    refused(r"is of another training \(seed 0 and not 1\): add --restart", *asked, "--seed", 1)
    run(*asked, "--seed", 1, "--restart")
    checkpoint = tmp_path / "out" / "mnist-fgsm.checkpoint"
    checkpoint.write_bytes(b"nothing")
    other = ("train", "mnist-fgsm", *asked[2:])
    refused("mnist-fgsm.checkpoint cannot be read as a checkpoint: add --restart", *other)
    run(*other, "--restart")
    assert not checkpoint.exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "name a recipe: facetwalk train --list shows them"),
        (("mnist",), "'mnist' names no recipe: see facetwalk train --list"),
        (("mnist-pgd", "--eps", 0.1), "give it a name of its own with --name"),
        (("mnist-pgd", "--method", "free", "--name", "mnist-pgd"), "give it a name of its own"),
        (("mnist-pgd", "--name", "a/b"), "--name must be a plain file name, for one recipe"),
        (("mnist-pgd", "mnist-fgsm", "--name", "a"), "--name must be a plain file name, for one"),
        (("mnist-pgd", "--method", "best", "--name", "a"), "method must be one of natural, fgsm"),
        (("mnist-pgd", "--eps", 2, "--name", "a"), "the radius must be between 0 and 1"),
        (("mnist-pgd", "--learning-rate", 0), "the learning rate must be positive"),
        (("mnist-pgd",), "say where the data lie and where results go"),
    ],
)
def test_bad_options_are_refused_in_a_sentence(refused, options, message):
    refused(re.escape(message), "train", *options)


def test_places_and_devices_that_are_not_there_are_refused(refused, data, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    asked = ("train", "mnist-natural", "--data", data, "--out", tmp_path / "out")
    refused("there is no CUDA device here: use --device cpu", *asked, "--device", "cuda")
    refused("there is no train-images-idx3-ubyte", *asked[:3], tmp_path, *asked[4:])
    refused("there is no folder .*nowhere", *asked[:3], tmp_path / "nowhere", *asked[4:])
    (tmp_path / "file").touch()
    refused("file/out cannot be a folder", *asked[:5], tmp_path / "file" / "out")
    refused(
        "cifar-vgg19 takes images of shape .* choose another architecture",
        *(*asked, *("--architecture", "cifar-vgg19", "--name", "a")),
    )
