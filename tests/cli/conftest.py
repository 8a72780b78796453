import json
import re
import resource
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from facetwalk.cli.app import app

NETWORKS = """
import torch
from torch import nn

class Soft(nn.Module):
    input_shape = (3,)

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([[1.0, 2, -1], [0.5, -3, 1], [2, 1, 1]]))

    def forward(self, x):
        return torch.relu((3 * x @ self.weight).softmax(1) - 0.2) @ self.weight

def without_relu():
    return nn.Linear(3, 2)

def double():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 4)).double()

def conv():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(18, 3))
"""


@pytest.fixture
def networks(tmp_path: Path) -> Path:
    """A user's file with functions that return networks."""
    path = tmp_path / "networks.py"
    path.write_text(NETWORKS)
    return path


def no_constant(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


@pytest.fixture
def run() -> Callable[..., str]:
    """Runs a command that must succeed, and returns what it printed."""

    def call(*arguments: object) -> str:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exit_code == 0, (result.stderr, result.exception)
        assert "\x1b" not in result.stdout
        return result.stdout

    return call


@pytest.fixture
def refused() -> Callable[..., None]:
    """Runs a command that must fail with exit code 2 and one line that matches."""

    def call(match: str, *arguments: object) -> None:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exit_code == 2, (result.output, result.exception)
        assert result.stdout == ""
        assert result.stderr.startswith("error: ")
        assert result.stderr.count("\n") == 1
        assert re.search(match, result.stderr), result.stderr

    return call


@pytest.fixture
def full_disk() -> Callable[[], AbstractContextManager[None]]:
    """Within it no file can grow beyond some bytes."""

    @contextmanager
    def limited() -> Iterator[None]:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return limited


@pytest.fixture
def failed() -> Callable[..., str]:
    """Runs a command that must end with exit code 2 and one line, perhaps after it printed some;
    returns the line."""

    def call(*arguments: object) -> str:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exit_code == 2, (result.output, result.exception)
        assert result.stderr.startswith("error: ")
        assert result.stderr.count("\n") == 1
        return result.stderr

    return call


@pytest.fixture
def read_json() -> Callable[[Path], Any]:
    """Reads strict JSON: NaN and infinities are refused."""
    return lambda path: json.loads(path.read_text(), parse_constant=no_constant)
