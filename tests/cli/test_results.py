"""Files that commands write: none takes the place of another, none is lost."""

import os

import numpy as np
import pytest

from facetwalk.cli.demo_output import write_demo
from facetwalk.cli.results import Output, check_outputs
from facetwalk.experiments.digits_demo import run as run_demo
from facetwalk.types import InputError

SMALL = ("maximize", "random:3,8,4", "--evaluations", 5)


def test_what_a_command_reads_is_not_replaced(refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("mine.npy", np.zeros((1, 3)))
    np.save("labels.npy", np.zeros(1, dtype=np.int64))
    os.symlink("mine.npy", "other.npy")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    ball = (*SMALL, "--around", "mine.npy", "--eps", 1)
    for name in ("mine.npy", tmp_path / "mine.npy", "other.npy"):
        refused("--save .* would replace a file that this command reads", *ball, "--save", name)
    box = (*SMALL, "--box", -1, 1)
    refused("would replace", *box, "--x0", "mine.npy", "--save", "mine.npy")
    refused("would replace", *box, "--objective", "margin:labels.npy", "--save", "labels.npy")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_network_is_not_replaced(tmp_path):
    for spec in ("net.onnx", "net.py:function"):
        with pytest.raises(InputError, match="would replace a file that this command reads"):
            check_outputs([Output("--save", tmp_path / spec.split(":")[0])], [tmp_path / spec])


def test_two_results_need_two_files(tmp_path):
    for other in (tmp_path / "same.json", tmp_path / "." / "x" / ".." / "same.json"):
        with pytest.raises(InputError, match=r"--json and --save both name .*: give each a file"):
            check_outputs([Output("--json", tmp_path / "same.json"), Output("--save", other)])
    check_outputs([Output("--json", tmp_path / "a.json"), Output("--save", tmp_path / "b.npy")])


def test_a_folder_that_is_closed_is_refused_before_the_work(tmp_path, monkeypatch):
    (tmp_path / "out.json").touch()
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)
    with pytest.raises(InputError, match=r"out.json may not be written: choose another place"):
        check_outputs([Output("--json", tmp_path / "out.json")])


def test_a_device_needs_no_ending(run):
    run("inspect", "random:3,4,1", "--json", "/dev/null")
    assert not os.path.isfile("/dev/null")


@pytest.mark.parametrize(
    ("command", "names"),
    [
        (("solvers",), {"--json": "out.json"}),
        (("inspect", "random:3,4,1"), {"--json": "out.json"}),
        (("optimum", "random:3,4,1", "--box", 0, 1, "--quiet"), {"--json": "out.json"}),
        ((*SMALL, "--box", 0, 1), {"--json": "out.json"}),
        ((*SMALL, "--box", 0, 1), {"--save": "x.npy"}),
        ((*SMALL, "--box", 0, 1), {"--figure": "trace.png"}),
        (
            ("attack", "digits", "--data", "digits", "--samples", 2, "--eps", 0.1, "--budget", 5),
            {"--save": "x.npz"},
        ),
        (
            ("evaluate", "digits", "--data", "digits", "--samples", 2, "--eps", 0.1, "--budget", 5),
            {"--json": "out.json"},
        ),
    ],
)
def test_on_a_full_disk_the_result_before_is_kept(run, failed, full_disk, tmp_path, command, names):
    options = [part for name, file in names.items() for part in (name, tmp_path / file)]
    run(*command, *options)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with full_disk():
        assert "File too large" in failed(*command, *options)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_demo_of_before_is_kept_too(full_disk, tmp_path):
    result = run_demo(images=2, evaluations=10)
    write_demo(result, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with full_disk(), pytest.raises(InputError, match=r"demo.json cannot be written: File too"):
        write_demo(result, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
