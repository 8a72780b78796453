"""The typer application: its commands, its version, and how it says what went wrong."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from facetwalk import FacetwalkError, __version__
from facetwalk.cli.attack_command import attack
from facetwalk.cli.demo_command import demo
from facetwalk.cli.evaluate_command import evaluate
from facetwalk.cli.inspect_command import inspect
from facetwalk.cli.maximize_command import maximize
from facetwalk.cli.optimum_command import optimum
from facetwalk.cli.reproduce import reproduce
from facetwalk.cli.solvers_command import solvers
from facetwalk.cli.train_command import train

_BAD_INPUT = 2


class _Commands(TyperGroup):
    """Commands whose errors are one line on standard error instead of a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except FacetwalkError as error:
            print("error:", *str(error).split(), file=sys.stderr)
            raise typer.Exit(_BAD_INPUT) from error


app = typer.Typer(
    name="facetwalk",
    cls=_Commands,
    add_completion=False,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
)
for command in (inspect, maximize, optimum, attack, evaluate, train, solvers, demo):
    app.command()(command)
app.add_typer(reproduce)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"facetwalk {__version__}")
        raise typer.Exit


@app.callback()
def facetwalk(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Find inputs of ReLU networks with a high objective."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
