"""`facetwalk reproduce all`: every experiment, and a page of them."""

from __future__ import annotations

from typing import Annotated

import typer

from facetwalk.cli import attack_options, options
from facetwalk.cli.model_choice import check_device
from facetwalk.cli.output import say, say_wrapped, show_table
from facetwalk.cli.reproduce.running import Data, FigureOnly, Nets, Out
from facetwalk.cli.stopping import goes_on
from facetwalk.experiments import report

_FAILED = 1


def everything(
    out: Out,
    data: Data = None,
    nets: Nets = None,
    device: attack_options.Device = "cpu",
    quick: Annotated[
        bool, typer.Option("--quick", help="Small forms that need no files: three minutes.")
    ] = False,
    figure_only: FigureOnly = False,
    quiet: options.Quiet = False,
) -> None:
    """Run all experiments, and write a page that shows them beside the paper.

    One that fails is named, and the others go on; the exit status is then 1.
    """
    if figure_only:
        finished = report.describe_all(report.PARTS, out)
    else:
        check_device(device)
        asked = report.Asked(data, nets, device, quick)
        with goes_on():
            finished = report.run_all(report.PARTS, asked, out, not quiet)
    rows = [[each.experiment.name, each.state] for each in finished]
    show_table(("experiment", ""), rows, words=("experiment", ""))
    for each in finished:
        if each.outcome is None:
            say_wrapped(f"{each.experiment.name} {each.state}: {each.failed or each.left_out}.")
    say(f"Wrote {report.PAGE} to {out}.")
    if any(each.failed for each in finished):
        raise typer.Exit(_FAILED)
