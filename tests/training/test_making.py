import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from small_problems import cifar_files, mnist_files, same_weights

from facetwalk.data import mnist
from facetwalk.digests import digest
from facetwalk.training import making, measure, recipe_of, train
from facetwalk.types import InputError, MissingExtraError
from facetwalk.writing import write_whole
from facetwalk.zoo import load_model

RECIPE = replace(recipe_of("mnist-strided-0.3"), epochs=2, attack_steps=2, batch_size=25)


@pytest.fixture(autouse=True)
def short_attacks(monkeypatch) -> None:
    monkeypatch.setattr("facetwalk.training.measuring._PGD_STEPS", 3)


@pytest.fixture
def data(tmp_path) -> Path:
    return mnist_files(tmp_path / "data")


def make(data: Path, out: Path, recipe=RECIPE, **options):
    return making.make(recipe, data, out, **{"budget": 10} | options)


def test_weights_and_a_record_are_written(data, tmp_path):
    out = tmp_path / "new" / "folder"
    record = make(data, out, images=50, command="facetwalk train 'a b'")
    name = RECIPE.name
    assert sorted(path.name for path in out.iterdir()) == [f"{name}.json", f"{name}.safetensors"]
    images, labels = (part[:50] for part in mnist(data, "train"))
    expected = train(RECIPE, images, labels)
    written = load_file(out / f"{name}.safetensors")
    assert all(torch.equal(written[key], value) for key, value in expected.net.state_dict().items())
    assert json.loads((out / f"{name}.json").read_text()) == record
    assert record["training"].items() >= {**vars(RECIPE), "images": 50}.items()
    test = [part[:50] for part in mnist(data, "test")]
    assert record["test"] == measure(expected.net, *test, RECIPE.radius, 10)
    assert record["history"] == expected.history
    assert record["command"] == "facetwalk train 'a b'"
    assert record["weights_digest"] == digest(written[key] for key in expected.net.state_dict())
    assert record["torch"] == torch.__version__
    assert record["seconds"] > 0
    assert "threads" in record["machine"]


def test_what_is_written_loads_as_the_network_it_was(data, tmp_path):
    make(data, tmp_path)
    loaded = load_model(str(tmp_path / f"{RECIPE.name}.safetensors"))
    assert (loaded.name, loaded.input_shape) == (RECIPE.name, (1, 28, 28))
    assert not loaded.model.training
    assert same_weights(loaded.model, train(RECIPE, *mnist(data, "train")).net)


def test_it_goes_on_after_an_interruption_and_finished_networks_stay(data, tmp_path, monkeypatch):
    class Killed(BaseException):
        pass

    def killed(*arguments, **options):
        raise Killed

    whole = make(data, tmp_path / "whole")
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(making, "measure", killed)
        with pytest.raises(Killed):
            make(data, out)
    assert [path.name for path in out.iterdir()] == [f"{RECIPE.name}.checkpoint"]
    with monkeypatch.context() as patch:
        patch.setattr("facetwalk.training.fitting._pass", killed)
        record = make(data, out)
    assert record["history"] == whole["history"]
    weights = f"{RECIPE.name}.safetensors"
    assert (out / weights).read_bytes() == (tmp_path / "whole" / weights).read_bytes()
    assert not (out / f"{RECIPE.name}.checkpoint").exists()
    (out / weights).unlink()
    assert make(data, out)["history"] == record["history"]
    record = make(data, out)
    monkeypatch.setattr(making, "train", killed)
    assert make(data, out) == record
    with pytest.raises(Killed):
        make(data, out, restart=True)


def test_another_recipe_or_other_data_in_the_same_place_are_refused(data, tmp_path):
    out = tmp_path / "out"
    make(data, out)
    with pytest.raises(InputError, match=r"\.json is of another training \(seed 2 and not 5\): "):
        make(data, out, replace(RECIPE, seed=5))
    with pytest.raises(InputError, match=r"\(data_digest \w+ and not \w+, images 60 and not 30\)"):
        make(data, out, images=30)
    (out / f"{RECIPE.name}.json").write_text("[]")
    with pytest.raises(InputError, match="is no record of a training: add --restart"):
        make(data, out)
    assert make(data, out, restart=True)["training"]["images"] == 60


def test_a_record_whose_weights_are_gone_is_not_written_over_by_another_training(data, tmp_path):
    make(data, tmp_path)
    (tmp_path / f"{RECIPE.name}.safetensors").unlink()
    record = (tmp_path / f"{RECIPE.name}.json").read_bytes()
    with pytest.raises(InputError, match=r"\.json is of another training \(seed 2 and not 5\): "):
        make(data, tmp_path, replace(RECIPE, seed=5))
    assert (tmp_path / f"{RECIPE.name}.json").read_bytes() == record


def test_weights_that_nobody_knows_of_are_not_written_over(data, tmp_path):
    weights = tmp_path / f"{RECIPE.name}.safetensors"
    weights.write_bytes(b"mine")
    with pytest.raises(InputError, match=r"safetensors is there without the record .* --restart"):
        make(data, tmp_path)
    assert weights.read_bytes() == b"mine"
    make(data, tmp_path, restart=True)
    assert load_model(weights).name == RECIPE.name


def test_a_training_that_was_killed_between_its_two_files_goes_on(data, tmp_path, monkeypatch):
    written = []

    def killed_at_the_record(path, content):
        if path.suffix == ".json":
            raise KeyboardInterrupt
        written.append(path.suffix)
        write_whole(path, content)

    monkeypatch.setattr(making, "write_whole", killed_at_the_record)
    with pytest.raises(KeyboardInterrupt):
        make(data, tmp_path)
    assert written == [".safetensors"]
    monkeypatch.setattr(making, "write_whole", write_whole)
    monkeypatch.setattr("facetwalk.training.fitting._pass", lambda *given: pytest.fail("again"))
    assert len(make(data, tmp_path)["history"]) == RECIPE.epochs


def test_a_restart_that_cannot_begin_removes_nothing(data, tmp_path):
    make(data, tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    with pytest.raises(InputError, match="cifar-cnn takes images of shape"):
        make(data, tmp_path, replace(RECIPE, architecture="cifar-cnn"), restart=True)
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


def test_a_restart_that_is_stopped_goes_on_without_it(data, tmp_path, monkeypatch):
    def stopped(*arguments):
        raise KeyboardInterrupt

    make(data, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("facetwalk.training.fitting._pass", stopped)
        with pytest.raises(KeyboardInterrupt):
            make(data, tmp_path, replace(RECIPE, seed=5), restart=True)
    assert make(data, tmp_path, replace(RECIPE, seed=5))["training"]["seed"] == 5


def test_cifar_is_read_from_its_files(tmp_path):
    recipe = replace(recipe_of("cifar-cnn-8"), epochs=1, attack_steps=1)
    record = make(cifar_files(tmp_path / "data"), tmp_path / "out", recipe)
    assert (record["training"]["images"], record["test"]["test_images"]) == (5, 7)
    assert load_model(str(tmp_path / "out" / "cifar-cnn-8.safetensors")).input_shape == (3, 32, 32)


def test_missing_data_and_folders_that_cannot_be_written_are_named(data, tmp_path):
    with pytest.raises(InputError, match="there is no train-images-idx3-ubyte"):
        make(tmp_path, tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file/out cannot be a folder: Not a directory"):
        make(data, tmp_path / "file" / "out")
    if os.geteuid():
        (tmp_path / "closed").mkdir(mode=0o500)
        with pytest.raises(InputError, match="closed may not be written to"):
            make(data, tmp_path / "closed")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"images": 0}, "images must be a whole number, at least 1; it is 0"),
        ({"images": -10}, "images must be a whole number, at least 1; it is -10"),
        ({"images": 2.5}, "images must be a whole number, at least 1; it is 2.5"),
        ({"budget": 0}, "budget must be a whole number, at least 1; it is 0"),
        ({"budget": None}, "budget must be a whole number, at least 1; it is None"),
        ({"device": "gpu"}, "device must be 'cpu' or 'cuda'; it is 'gpu'"),
        ({"device": "cuda"}, "there is no CUDA device here: use device='cpu'"),
        ({"recipe": "mnist-pgd"}, "the recipe must be a Recipe"),
    ],
)
def test_bad_options_are_refused_before_anything_is_done(
    options, message, data, tmp_path, monkeypatch
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    out = tmp_path / "out"
    make(data, out)
    before = {path: path.read_bytes() for path in out.iterdir()}
    with pytest.raises(InputError, match=message):
        make(data, out, restart=True, **options)
    assert {path: path.read_bytes() for path in out.iterdir()} == before


def test_places_may_be_texts_and_numbers_those_of_other_libraries(data, tmp_path):
    record = make(data, tmp_path / "a", images=30)
    again = make(str(data), str(tmp_path / "b"), images=np.int64(30), budget=np.int64(10))  # pyright: ignore
    assert again["training"] == record["training"]
    assert again["test"] == record["test"]


def test_without_safetensors_the_extra_is_named(monkeypatch, data, tmp_path):
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    with pytest.raises(MissingExtraError, match=r"facetwalk\[demo\]"):
        make(data, tmp_path)
