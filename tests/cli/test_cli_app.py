import os
import pty
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import facetwalk
from facetwalk.cli.app import app

BLOCKED = """
import sys

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Block())
sys.argv = ["facetwalk", *{arguments!r}]
from facetwalk.cli import main
main()
"""


def process(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)


def test_without_a_command_the_help_is_shown(run):
    printed = run()
    assert all(name in printed for name in ("inspect", "maximize", "solvers", "demo"))


@pytest.mark.parametrize("command", ["inspect", "maximize", "solvers", "demo"])
def test_each_command_has_help(run, command):
    assert f"Usage: facetwalk {command}" in run(command, "--help")


def test_the_version_is_shown(run):
    assert run("--version") == f"facetwalk {facetwalk.__version__}\n"


@pytest.mark.parametrize("arguments", [["nothing"], ["inspect"], ["maximize", "digits", "--no"]])
def test_wrong_usage_exits_with_2_and_without_a_traceback(arguments):
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert "Usage" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("blocked", ["typer", "rich"])
def test_without_the_extra_one_line_names_it(blocked):
    result = process("-c", BLOCKED.format(blocked=blocked, arguments=["solvers"]))
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        "error: the command line needs an optional dependency: pip install 'facetwalk[cli]'\n"
    )


@pytest.mark.parametrize(
    ("blocked", "arguments", "message"),
    [
        ("sklearn", ["demo"], "the digits data needs .* 'facetwalk[demo]'"),
        ("matplotlib", ["demo"], "drawing figures needs .* 'facetwalk[demo]'"),
    ],
)
def test_a_missing_library_of_a_command_is_one_line(tmp_path, blocked, arguments, message):
    arguments = [*arguments, "--out", str(tmp_path)]
    result = process("-c", BLOCKED.format(blocked=blocked, arguments=arguments))
    assert (result.returncode, result.stdout) == (2, "")
    start, end = message.split(" .* ")
    assert result.stderr.startswith(f"error: {start} an optional")
    assert result.stderr.endswith(f"{end}\n")
    assert result.stderr.count("\n") == 1


def test_the_module_runs_as_a_process():
    result = process("-m", "facetwalk", "inspect", "random:3,4,1")
    assert (result.returncode, result.stderr) == (0, "")
    assert "\x1b" not in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_an_error_of_a_process_is_one_plain_line():
    result = process("-m", "facetwalk", "inspect", "[red]nothing[/red]")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("error: '[red]nothing[/red]' names no network")
    assert result.stderr.count("\n") == 1


def test_a_terminal_gets_a_progress_bar_unless_quiet():
    command = ["-m", "facetwalk", "maximize", "random:3,4,1", "--box", "-1", "1"]
    assert "Recombination" in terminal_output(*command)
    assert terminal_output(*command, "--quiet") == ""


def terminal_output(*arguments: str) -> str:
    """What a process writes to standard error when that is a terminal."""
    parent, child = pty.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    subprocess.run(
        [sys.executable, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=child,
        env=environment,
        check=True,
    )
    os.close(child)
    shown = b""
    try:
        while block := os.read(parent, 1 << 16):
            shown += block
    except OSError:  # Linux says so when the other end is closed and all is read
        pass
    os.close(parent)
    return shown.decode()
