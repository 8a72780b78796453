"""What is said where a command ends by Ctrl-C, or by an error that nobody foresaw."""

import errno
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import facetwalk
from facetwalk.cli import main
from facetwalk.cli.app import app

DIGITS = ("evaluate", "digits", "--data", "digits", "--eps", "0.2", "--samples", "2")
GOES_ON = "stopped; the same command goes on where it was\n"


def stop(*arguments, **options):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("work", "command", "said"),
    [
        ("cli.evaluate_command.evaluate_model", (*DIGITS, "--out", "run"), GOES_ON),
        ("cli.evaluate_command.evaluate_model", DIGITS, "stopped\n"),
        ("cli.train_command.make", ("train", "mnist-pgd", "--data", "x", "--out", "run"), GOES_ON),
        (
            "cli.train_command.make",
            ("train", "mnist-pgd", "--data", "x", "--out", "run", "--restart"),
            "stopped; the same command without --restart goes on where it was\n",
        ),
        ("cli.reproduce.running.reproduce", ("reproduce", "toy", "--out", "run"), GOES_ON),
        (
            "experiments.report.run_all",
            ("reproduce", "all", "--quick", "--out", "run"),
            GOES_ON,
        ),
        ("cli.inspect_command.inspect_model", ("inspect", "random:3,4,1"), "stopped\n"),
    ],
)
def test_a_command_that_is_stopped_says_whether_it_can_go_on(monkeypatch, work, command, said):
    monkeypatch.setattr(f"facetwalk.{work}", stop)
    result = CliRunner().invoke(app, command)
    assert (result.exit_code, result.stderr) == (130, said)


def test_a_search_that_is_stopped_says_so(monkeypatch):
    monkeypatch.setattr(facetwalk, "maximize", stop)
    result = CliRunner().invoke(app, ["maximize", "random:3,4,1", "--box", "0", "1"])
    assert (result.exit_code, result.stderr) == (130, "stopped\n")


def test_it_may_be_stopped_while_it_starts(monkeypatch, capsys):
    class Stop:
        def find_spec(self, name, path=None, target=None):
            if name == "facetwalk.cli.app":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "facetwalk.cli.app")
    monkeypatch.setattr(sys, "meta_path", [Stop(), *sys.meta_path])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert capsys.readouterr() == ("", "stopped\n")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "x.npy"),
            "error: x.npy cannot be read or written: No space left on device\n",
        ),
        (
            OSError(errno.EIO, os.strerror(errno.EIO)),
            "error: a file or the output cannot be read or written: Input/output error\n",
        ),
    ],
)
def test_an_error_of_the_system_is_one_line(monkeypatch, error, said):
    def fail(*arguments):
        raise error

    monkeypatch.setattr("facetwalk.cli.solvers_command.document", fail)
    result = CliRunner().invoke(app, ["solvers"])
    assert (result.exit_code, result.stderr) == (2, said)


@pytest.mark.parametrize("arguments", [["solvers", "sign"], ["--help"]])
def test_output_that_cannot_be_written_is_one_line(arguments):
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "facetwalk", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert result.returncode == 2
    assert result.stderr == (
        "error: a file or the output cannot be read or written: No space left on device\n"
    )
