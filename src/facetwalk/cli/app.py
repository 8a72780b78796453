"""The typer application: its commands, its version, and how it says what went wrong."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
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
from facetwalk.cli.output import drop_what_cannot_be_printed
from facetwalk.cli.reproduce import reproduce
from facetwalk.cli.solvers_command import solvers
from facetwalk.cli.stopping import say_stopped
from facetwalk.cli.train_command import train

_BAD_INPUT = 2


class _Commands(TyperGroup):
    """Commands whose errors are one line on standard error instead of a traceback."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        with _said_in_one_line():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        with _said_in_one_line():
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result


@contextmanager
def _said_in_one_line() -> Iterator[None]:
    try:
        yield
    except FacetwalkError as error:
        raise _failed(str(error)) from error
    except BrokenPipeError:
        raise  # who reads the output wants no more of it
    except OSError as error:
        drop_what_cannot_be_printed()
        place = error.filename or "a file or the output"
        raise _failed(f"{place} cannot be read or written: {error.strerror or error}") from error
    except KeyboardInterrupt as stop:
        raise typer.Exit(say_stopped(stop)) from stop


def _failed(words: str) -> typer.Exit:
    print("error:", *words.split(), file=sys.stderr)
    return typer.Exit(_BAD_INPUT)


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
