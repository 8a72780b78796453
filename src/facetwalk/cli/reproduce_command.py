"""`facetwalk reproduce NAME`: the paper's experiments, with records, a table and a figure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from facetwalk.cli import attack_options, options
from facetwalk.cli.model_choice import check_device
from facetwalk.cli.output import say, say_wrapped, show_table
from facetwalk.experiments import adversarial as adversarial_experiment
from facetwalk.experiments import policies as policies_experiment
from facetwalk.experiments import rl as rl_experiment
from facetwalk.experiments.experiment import Experiment, Plan
from facetwalk.experiments.reproducing import describe
from facetwalk.experiments.reproducing import reproduce as run

Out = Annotated[
    Path, typer.Option(help="Folder for the results; run again, it goes on where it was.")
]
FigureOnly = Annotated[
    bool,
    typer.Option("--figure-only", help="Measure nothing: tables and figure of what is there."),
]

reproduce = typer.Typer(name="reproduce", no_args_is_help=True)


@reproduce.callback()
def about() -> None:
    """Run an experiment of the paper again, beside stronger rivals."""


@reproduce.command()
def adversarial(
    out: Out,
    data: Annotated[
        Path | None, typer.Option(help="Folder with the files of MNIST, CIFAR-10 and ImageNet.")
    ] = None,
    nets: Annotated[
        Path | None, typer.Option(help="Folder with networks: see docs/reproduce.md.")
    ] = None,
    device: attack_options.Device = "cpu",
    images: Annotated[
        int | None, typer.Option(min=1, help="How many of each data set; 1000 of MNIST, 200 of others.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How often each attack runs.")] = 3,
    budget: Annotated[
        int | None, typer.Option(help="Gradients of each attack an image; as ADR-GD's.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="mnist, cifar10 or imagenet; may be repeated.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A small form that needs no files, on digits.")
    ] = False,
    figure_only: FigureOnly = False,
    quiet: options.Quiet = False,
) -> None:
    """Attack image classifiers, natural and robust, with and without targets."""

    def plan() -> Plan:
        check_device(device)
        return adversarial_experiment.plan(
            adversarial_experiment.Request(
                data, nets, device, images, seeds, budget, tuple(only or ()), quick
            )
        )

    _reproduce(adversarial_experiment.ADVERSARIAL, plan, out, figure_only, quiet)


@reproduce.command()
def rl(
    out: Out,
    env: Annotated[
        list[str] | None, typer.Option(help="Of gymnasium; may be repeated. HalfCheetah-v5.")
    ] = None,
    algo: Annotated[list[str] | None, typer.Option(help="td3 or ddpg; may be repeated.")] = None,
    steps: Annotated[int, typer.Option(min=20, help="Of each run.")] = 100_000,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each algorithm.")] = 3,
    processes: Annotated[int, typer.Option(min=1, help="Runs at a time.")] = 1,
    device: attack_options.Device = "cpu",
    quick: Annotated[
        bool, typer.Option("--quick", help="Some hundred steps of Pendulum-v1.")
    ] = False,
    figure_only: FigureOnly = False,
    quiet: options.Quiet = False,
) -> None:
    """Train agents as they are, and with actions refined by their critics."""

    def plan() -> Plan:
        check_device(device)
        request = rl_experiment.Request(
            env or ("HalfCheetah-v5",), algo or ("td3",), steps, seeds, device, quick
        )
        if processes > 1:
            rl_experiment.train_side_by_side(request, out, processes)
        return rl_experiment.plan(request, out)

    _reproduce(rl_experiment.RL, plan, out, figure_only, quiet)


@reproduce.command()
def policies(
    out: Out,
    nets: Annotated[
        Path | None, typer.Option(help="Folder with policies: see docs/control.md.")
    ] = None,
    episodes: Annotated[int, typer.Option(min=1, help="Of each attack on each policy.")] = 100,
    parallel: Annotated[int, typer.Option(min=1, help="Games at a time.")] = 50,
    budget: Annotated[int, typer.Option(help="Gradients of each attack at each step.")] = 200,
    only: Annotated[list[str] | None, typer.Option(help="A game; may be repeated.")] = None,
    frames: Annotated[
        bool, typer.Option("--frames", help="Also draw frames of an attacked game.")
    ] = False,
    device: attack_options.Device = "cpu",
    quick: Annotated[
        bool, typer.Option("--quick", help="One episode of a network with random weights.")
    ] = False,
    figure_only: FigureOnly = False,
    quiet: options.Quiet = False,
) -> None:
    """Attack what policies see of Procgen's games."""
    request = policies_experiment.Request(
        nets, episodes, parallel, device, budget, tuple(only or ()), quick
    )

    def plan() -> Plan:
        check_device(device)
        return policies_experiment.plan(request)

    _reproduce(policies_experiment.POLICIES, plan, out, figure_only, quiet)
    if frames and not figure_only:
        policies_experiment.save_frames(request, out / "frames.png")


def _reproduce(
    experiment: Experiment, plan: Callable[[], Plan], out: Path, figure_only: bool, quiet: bool
) -> None:
    """Run what is planned, unless only the figure is asked for, and show what the records say."""
    outcome = describe(experiment, out) if figure_only else run(experiment, plan(), out, not quiet)
    for table in outcome.tables:
        say_wrapped(table.title)
        show_table(table.columns, table.rows, words=table.words)
    for sentence in (*outcome.comment, *outcome.left_out):
        say_wrapped(sentence)
    say(f"Wrote {', '.join(outcome.files)} to {out}.")
