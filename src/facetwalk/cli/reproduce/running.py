"""What the commands of experiments share: options, and how an experiment runs and is shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from facetwalk import InputError
from facetwalk.cli.output import say, say_wrapped, show_table
from facetwalk.cli.stopping import goes_on
from facetwalk.experiments.commands import command_of
from facetwalk.experiments.experiment import Experiment, Plan
from facetwalk.experiments.reproducing import describe, reproduce

Request = TypeVar("Request")

Out = Annotated[
    Path, typer.Option(help="Folder for the results; run again, it goes on where it was.")
]
FigureOnly = Annotated[
    bool,
    typer.Option("--figure-only", help="Measure nothing: tables and figure of what is there."),
]
Quick = Annotated[bool, typer.Option("--quick", help="A small form that needs no files.")]
Data = Annotated[
    Path | None, typer.Option(help="Folder with the files of MNIST, CIFAR-10 and ImageNet.")
]
Processes = Annotated[int, typer.Option(min=1, help="Measurements at a time, each a process.")]
Nets = Annotated[Path | None, typer.Option(help="Folder with networks: see docs/reproduce.md.")]


def run_experiment(
    experiment: Experiment,
    ask: Callable[[], Request],
    plan: Callable[[Request], Plan],
    out: Path,
    figure_only: bool,
    quiet: bool,
    processes: int = 1,
) -> None:
    """Run what is asked for, unless only the figure is, and show what the records say."""
    if figure_only:
        if not (out / "run.json").exists():
            raise InputError(f"there is no run in {out}: run without --figure-only first")
        outcome = describe(experiment, out)
    else:
        request = ask()
        command = command_of(experiment.name, request, out)
        with goes_on():
            outcome = reproduce(experiment, plan(request), out, not quiet, command, processes)
    for table in outcome.tables:
        say_wrapped(table.title)
        show_table(table.columns, table.rows, words=table.words)
    for sentence in (*outcome.comment, *outcome.left_out):
        say_wrapped(sentence)
    say(f"Wrote {', '.join(outcome.files)} to {out}.")
