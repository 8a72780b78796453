"""The command line: `inspect`, `maximize`, `solvers` and `demo`."""

from __future__ import annotations

import sys

from facetwalk.types import MissingExtraError


def main() -> None:
    """Run the command that the arguments of this process name."""
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
