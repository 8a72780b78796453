"""`facetwalk optimum`."""

import numpy as np
import pytest
import torch

from facetwalk import Box, LinfBall, exact
from facetwalk.objectives import Margin, Output
from facetwalk.zoo import random_network

SMALL = ("optimum", "random:3,8,4", "--seed", 1)


@pytest.mark.parametrize("engine", ["boxes", "milp"])
def test_the_proof_is_shown_and_written(run, read_json, tmp_path, engine):
    out = tmp_path / "out.json"
    printed = run(*SMALL, "--box", -1, 1, "--engine", engine, "--gap", 0.05, "--json", out)
    space = Box(-1, 1, shape=(3,))
    proof = exact.maximize(
        random_network((3, 8, 4), 1), space, Output(0), engine=engine, gap=0.05, seed=1
    )
    data = read_json(out)["proof"]
    assert data["value"] == pytest.approx(proof.value, abs=1e-6)
    assert data["value"] <= data["bound"] <= data["value"] + 0.05
    assert data["proven"] is True
    assert data["engine"] == engine
    assert f"{data['value']:.6f}" in printed
    assert "yes" in printed
    assert "x: " in printed


def test_a_margin_around_an_input(run, read_json, tmp_path):
    np.save(tmp_path / "x.npy", np.full(3, 0.5))
    run(
        *(*SMALL, "--around", tmp_path / "x.npy", "--eps", "1/5", "--bounds", 0, 1),
        *("--objective", "margin:2", "--json", tmp_path / "out.json"),
    )
    space = LinfBall(torch.full((1, 3), 0.5), 0.2, bounds=(0, 1))
    proof = exact.maximize(random_network((3, 8, 4), 1), space, Margin(torch.tensor([2])))
    assert read_json(tmp_path / "out.json")["proof"]["value"] == pytest.approx(
        proof.value, abs=1e-2
    )


def test_when_time_is_up_at_once_there_is_a_point_and_a_bound(run, read_json, tmp_path):
    out = tmp_path / "out.json"
    run("optimum", "random:12,60,60,1", "--box", -1, 1, "--time", 1e-3, "--json", out)
    proof = read_json(out)["proof"]
    x = torch.tensor(proof["x"])[None]
    value = random_network((12, 60, 60, 1), 0)(x).item()
    assert value == pytest.approx(proof["value"], rel=1e-4)
    assert proof["value"] < proof["bound"]
    assert proof["proven"] is False


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ([], "either --box LOW HIGH or --around FILE --eps E"),
        (["--box", 0, 1, "--objective", "dlr:1"], "the maximum of DLR cannot be proven"),
        (["--box", 0, 1, "--engine", "simplex"], "engine must be one of auto, boxes, milp"),
        (["--box", 0, 1, "--objective", "margin:1,2"], "margin:1,2 has 2 labels: give one"),
        (["--around", "two.npy", "--eps", 0.1], "two.npy holds 2 inputs: save one of them"),
        (["--around", "two.npy", "--eps", "8/0"], "'8/0' must be a number, or two as in 8/255"),
        (["--box", 0, 1, "--gap", 0], "gap must be positive"),
        (["--box", 0, 1, "--time", 0], "time_limit must be positive"),
        (["--box", 0, 1, "--json", "no/out.json"], "there is no folder no"),
    ],
)
def test_what_cannot_be_proven_is_refused(refused, tmp_path, monkeypatch, options, match):
    monkeypatch.chdir(tmp_path)
    np.save("two.npy", np.zeros((2, 3)))
    refused(match, *SMALL, *options)


def test_a_network_without_relus_is_refused_in_words_of_this_command(refused):
    refused(
        "no ReLU was found in random:3,1: name a network", "optimum", "random:3,1", "--box", 0, 1
    )
