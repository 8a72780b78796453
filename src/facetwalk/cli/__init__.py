"""The command line; `app.py` lists its commands."""

from __future__ import annotations

import sys

from facetwalk.cli.stopping import say_stopped
from facetwalk.types import MissingExtraError


def main() -> None:
    """Run the command that the arguments of this process name."""
    try:
        _run()
    except KeyboardInterrupt as stop:
        sys.exit(say_stopped(stop))


def _run() -> None:
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError:
        sys.exit(_refusal())
    from facetwalk.cli.app import app

    app()


def _refusal() -> int:
    print(f"error: {MissingExtraError('the command line', 'cli')}", file=sys.stderr)
    return 2
