"""What the paper uses ADR-GD for: attacks on classifiers and policies, training of agents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from facetwalk.cli import attack_options, options
from facetwalk.cli.model_choice import check_device
from facetwalk.cli.reproduce.running import (
    Data,
    FigureOnly,
    Nets,
    Out,
    Processes,
    run_experiment,
)
from facetwalk.experiments import adversarial as adversarial_experiment
from facetwalk.experiments import policies as policies_experiment
from facetwalk.experiments import rl as rl_experiment
from facetwalk.experiments.experiment import Plan


def adversarial(
    out: Out,
    data: Data = None,
    nets: Nets = None,
    device: attack_options.Device = "cpu",
    images: Annotated[
        int | None, typer.Option(min=1, help="How many of each data set; 1000, 200 or 250.")
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

    def ask() -> adversarial_experiment.Request:
        check_device(device)
        return adversarial_experiment.Request(
            data, nets, device, images, seeds, budget, tuple(only or ()), quick
        )

    run_experiment(
        adversarial_experiment.ADVERSARIAL,
        ask,
        adversarial_experiment.plan,
        out,
        figure_only,
        quiet,
    )


def rl(
    out: Out,
    env: Annotated[
        list[str] | None, typer.Option(help="Of gymnasium; may be repeated. HalfCheetah-v5.")
    ] = None,
    algo: Annotated[list[str] | None, typer.Option(help="td3 or ddpg; may be repeated.")] = None,
    steps: Annotated[int, typer.Option(min=20, help="Of each run.")] = 100_000,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each algorithm.")] = 3,
    processes: Processes = 1,
    device: attack_options.Device = "cpu",
    quick: Annotated[
        bool, typer.Option("--quick", help="Some hundred steps of Pendulum-v1.")
    ] = False,
    figure_only: FigureOnly = False,
    quiet: options.Quiet = False,
) -> None:
    """Train agents as they are, and with actions refined by their critics."""

    def ask() -> rl_experiment.Request:
        check_device(device)
        return rl_experiment.Request(
            env or ("HalfCheetah-v5",), algo or ("td3",), steps, seeds, device, quick
        )

    def plan(request: rl_experiment.Request) -> Plan:
        return rl_experiment.plan(request, out)

    run_experiment(rl_experiment.RL, ask, plan, out, figure_only, quiet, processes)


def policies(
    out: Out,
    nets: Annotated[
        Path | None, typer.Option(help="Folder with more policies: see docs/control.md.")
    ] = None,
    episodes: Annotated[int, typer.Option(min=1, help="Of each attack on each policy.")] = 100,
    parallel: Annotated[int, typer.Option(min=1, help="Games at a time.")] = 50,
    budget: Annotated[int, typer.Option(help="Gradients of each attack at each step.")] = 200,
    only: Annotated[list[str] | None, typer.Option(help="A game; may be repeated.")] = None,
    attack: Annotated[
        list[str] | None,
        typer.Option(
            help='none, FGSM, PGD, ADR-GD, ours, "PGD, costly", or "ours, costly"; may be repeated.'
        ),
    ] = None,
    frames: Annotated[
        bool, typer.Option("--frames", help="Also draw frames of an attacked game.")
    ] = False,
    processes: Processes = 1,
    device: attack_options.Device = "cpu",
    quick: Annotated[
        bool, typer.Option("--quick", help="One game each, a network with random weights.")
    ] = False,
    figure_only: FigureOnly = False,
    quiet: options.Quiet = False,
) -> None:
    """Attack what policies see of Procgen's games."""

    def ask() -> policies_experiment.Request:
        check_device(device)
        return policies_experiment.Request(
            nets, episodes, parallel, device, budget, tuple(only or ()), tuple(attack or ()), quick
        )

    run_experiment(
        policies_experiment.POLICIES,
        ask,
        policies_experiment.plan,
        out,
        figure_only,
        quiet,
        processes,
    )
    if frames and not figure_only:
        policies_experiment.save_frames(ask(), out / "frames.png")
