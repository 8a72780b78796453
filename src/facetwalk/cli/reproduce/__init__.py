"""`facetwalk reproduce NAME`: the paper's experiments, with records, tables and a figure."""

from __future__ import annotations

import typer

from facetwalk.cli.reproduce.analyses import ablation, gradients, landscape, runtime, sigmoid, toy
from facetwalk.cli.reproduce.applications import adversarial, policies, rl
from facetwalk.cli.reproduce.everything import everything

reproduce = typer.Typer(name="reproduce", no_args_is_help=True)
for command in (toy, landscape, gradients, sigmoid, ablation, runtime, adversarial, rl, policies):
    reproduce.command()(command)
reproduce.command("all")(everything)


@reproduce.callback()
def about() -> None:
    """Run an experiment of the paper again, beside stronger rivals."""
