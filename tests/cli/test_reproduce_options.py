"""The command that stands above results asks for just these results."""

import importlib
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from facetwalk.cli.app import app
from facetwalk.experiments.commands import command_of
from facetwalk.types import InputError

ASKED = {
    "toy": [{}, {"quick": True}],
    "landscape": [{}, {"quick": True}],
    "gradients": [
        {},
        {"data": Path("my data"), "nets": Path("nets"), "networks": 3},
        {"quick": True},
    ],
    "sigmoid": [{}, {"models": ("A", "C"), "networks": 5, "seeds": 2}, {"quick": True}],
    "ablation": [{}, {"models": ("B",), "networks": 5, "seeds": 2}, {"quick": True}],
    "runtime": [{}, {"quick": True}],
    "adversarial": [
        {"data": Path("data"), "nets": Path("nets"), "only": ("mnist", "cifar10"), "seeds": 5},
        {"quick": True, "images": 3, "budget": 40},
    ],
    "rl": [{}, {"envs": ("Ant-v5", "Hopper-v5"), "algos": ("td3", "ddpg"), "steps": 200}],
    "policies": [
        {"nets": Path("nets"), "episodes": 7, "parallel": 3, "budget": 20, "only": ("Jumper",)},
        {"nets": Path("nets"), "attacks": ("none", "FGSM")},
        {"only": ("CoinRun",)},
        {"quick": True},
    ],
}


@pytest.mark.parametrize(
    ("name", "fields"), [(name, fields) for name, cases in ASKED.items() for fields in cases]
)
def test_a_command_asks_for_what_it_was_made_of(name, fields, monkeypatch, tmp_path):
    experiment = importlib.import_module(f"facetwalk.experiments.{name}")
    expected = experiment.Request(**fields)
    asked = []

    def plan(request, *more):
        asked.append(request)
        raise InputError("that is all")

    monkeypatch.setattr(experiment, "plan", plan)
    program, *words = shlex.split(command_of(name, expected, tmp_path / "my run"))
    result = CliRunner().invoke(app, words)
    assert program == "facetwalk"
    assert result.stderr == "error: that is all\n", result.output
    (found,) = asked
    assert command_of(name, found, tmp_path) == command_of(name, expected, tmp_path)
    for field, value in fields.items():
        given = getattr(found, field)
        assert (tuple(given) if isinstance(value, tuple) else given) == value


@pytest.mark.parametrize("name", ["gradients", "sigmoid", "ablation", "runtime"])
def test_a_device_that_is_not_there_is_refused(refused, name, tmp_path):
    refused("--device must be cpu or cuda", "reproduce", name, "--out", tmp_path, "--device", "x")


def test_a_model_that_is_not_there_is_refused(refused, tmp_path):
    for name in ("sigmoid", "ablation"):
        refused("'D'", "reproduce", name, "--model", "D", "--out", tmp_path / name)
