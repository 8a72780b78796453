import json
import re

import numpy as np
import pytest
import torch

import facetwalk as fw
from facetwalk.zoo import digits, digits_net

DIGITS = ("evaluate", "digits", "--data", "digits", "--eps", "0.2", "--budget", 60)


def expected(count: int, first: int = 0, **options) -> fw.robustness.Report:
    images, labels = (part[first : first + count] for part in digits("test"))
    return fw.robustness.evaluate(digits_net(), images, labels, eps=0.2, **{"budget": 60} | options)


def test_the_figures_are_those_of_the_library(run, read_json, tmp_path):
    out = tmp_path / "out.json"
    printed = run(*DIGITS, "--samples", 30, "--first", 7, "--json", out)
    report, data = expected(30, first=7), read_json(out)
    assert [sample["broken_by"] for sample in data["samples"]] == [
        sample.broken_by for sample in report.samples
    ]
    assert data["robust_accuracy"] == report.robust_accuracy
    assert data["broken"] == report.broken
    assert f"{report.robust_accuracy:.2%}" in printed
    assert "digits, test, 7 to 36" in printed
    assert max(map(len, printed.splitlines())) <= 80


def test_run_again_it_goes_on_where_it_was(run, tmp_path):
    out = tmp_path / "run"
    first = run(*DIGITS, "--samples", 20, "--out", out)
    lines = out / "samples.jsonl"
    whole = lines.read_text()
    lines.write_text("".join(whole.splitlines(keepends=True)[:5]) + '{"index": 5, "la')
    again = run(*DIGITS, "--samples", 20, "--out", out)
    kept = [json.loads(line) for line in lines.read_text().splitlines()]
    before = [json.loads(line) for line in whole.splitlines()]
    assert [s["broken_by"] for s in kept] == [s["broken_by"] for s in before]
    assert [line for line in first.splitlines() if "robust" in line] == [
        line for line in again.splitlines() if "robust" in line
    ]


@pytest.mark.parametrize("command", ["attack", "evaluate"])
@pytest.mark.parametrize("name", ["net.pt", "folder/NET.PTH"])
def test_of_weights_that_torch_saved_it_is_said_what_to_do(refused, command, name):
    match = f"{name} may hold weights.* makes the network and loads them .* path/to/file.py:functi"
    refused(match, command, name, "--data", "digits", "--eps", 0.1)


def test_a_norm_has_one_name_in_all_records(run, read_json, tmp_path):
    out, folder = tmp_path / "out.json", tmp_path / "run"
    asked = (*DIGITS, "--samples", 2, "--out", folder, "--json", out)
    for name in ("Linf", "inf", "linf"):
        printed = run(*asked, "--norm", name)
        assert "within 0.2 in norm inf\n" in printed
        assert read_json(out)["norm"] == read_json(folder / "run.json")["norm"] == "inf"


def test_files_of_ones_own(run, read_json, tmp_path):
    images, labels = digits("test")
    np.save(tmp_path / "x.npy", images[:15].numpy())
    torch.save(labels[:15], tmp_path / "y.pt")
    files = ("--images", tmp_path / "x.npy", "--labels", tmp_path / "y.pt")
    out = tmp_path / "out.json"
    run("evaluate", "digits", *files, "--eps", "1/5", "--budget", 60, "--json", out)
    assert read_json(out)["robust_accuracy"] == expected(15).robust_accuracy


def test_what_makes_figures_doubtful_is_said(run, tmp_path):
    (tmp_path / "soft.py").write_text(
        "from torch import nn\nfrom facetwalk.zoo import digits_net\n"
        "def net():\n    return nn.Sequential(digits_net(), nn.Softmax(1))\n"
    )
    model = f"{tmp_path / 'soft.py'}:net"
    options = ("--data", "digits", "--eps", 0.1, "--samples", 10, "--budget", 40)
    printed = run("evaluate", model, "--shape", "1,8,8", *options)
    assert "note: the outputs are probabilities" in " ".join(printed.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--eps", 0.1), "say what to attack: either --data NAME or --images FILE"),
        (("--eps", 0.1, "--data", "mnist"), "--data mnist needs the folder"),
        (("--eps", "8/0", "--data", "digits"), "'8/0' must be a number, or two as in 8/255"),
        (("--eps", "1/2/3", "--data", "digits"), "must be a number, or two as in 8/255"),
        (("--eps", -1, "--data", "digits"), "eps must be a finite number, not negative"),
        (("--eps", 0.1, "--data", "digits", "--norm", 3), "norm must be one of inf, 2, 1"),
        (("--eps", 0.1, "--data", "digits", "--first", 10**6), "and --first is 1000000"),
        (("--eps", 0.1, "--data", "digits", "--bounds", 0.4, 1), "outside the bounds 0.4 and 1"),
        (("--eps", 0.1, "--data", "digits", "--bounds", 1, 0), "a lowest and a highest value"),
        (("--eps", 0.1, "--data", "MNIST"), "'MNIST': choose one of digits, mnist, fashion-mnist"),
        (("--eps", 0.1, "--images", "x.npy"), "--images needs the true classes too"),
    ],
)
def test_bad_options_are_refused_in_a_sentence(refused, options, message):
    refused(re.escape(message), "evaluate", "digits", *options)


def test_a_folder_with_samples_of_ones_own_is_refused_and_left_alone(refused, tmp_path):
    (tmp_path / "samples.jsonl").write_text("mine, without an end")
    refused("holds samples.jsonl but no run.json", *DIGITS, "--samples", 2, "--out", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["samples.jsonl"]
    assert (tmp_path / "samples.jsonl").read_text() == "mine, without an end"


def test_the_record_of_a_run_is_not_replaced(run, refused, tmp_path):
    asked = (*DIGITS, "--samples", 2, "--out", tmp_path)
    run(*asked)
    known = (tmp_path / "run.json").read_text()
    refused("would replace a file that this command reads", *asked, "--json", tmp_path / "run.json")
    assert (tmp_path / "run.json").read_text() == known


def test_on_a_full_disk_what_was_done_is_kept(run, failed, full_disk, tmp_path):
    asked = (*DIGITS, "--samples", 4, "--out", tmp_path)
    run(*asked)
    lines = tmp_path / "samples.jsonl"
    whole = lines.read_text()
    lines.write_text("".join(whole.splitlines(keepends=True)[:2]))
    with full_disk():
        assert "samples.jsonl cannot be written" in failed(*asked)
    run(*asked)
    kept = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [sample["index"] for sample in kept] == [0, 1, 2, 3]


def test_rows_at_once_are_passed_on(run, monkeypatch):
    asked = []

    def evaluate(*data, batch_size, **options):
        asked.append(batch_size)
        return fw.robustness.evaluate(*data, batch_size=batch_size, **options)

    monkeypatch.setattr("facetwalk.cli.evaluate_command.evaluate_model", evaluate)
    run(*DIGITS, "--samples", 2)
    run(*DIGITS, "--samples", 2, "--batch-size", 3)
    assert asked == [None, 3]
