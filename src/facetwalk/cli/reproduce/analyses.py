"""What the paper shows of ADR-GD itself: examples, gradients, its parts, its cost."""

from __future__ import annotations

from typing import Annotated

import typer

from facetwalk.cli import attack_options, options
from facetwalk.cli.model_choice import check_device
from facetwalk.cli.reproduce.running import Data, FigureOnly, Nets, Out, Quick, run_experiment
from facetwalk.experiments import ablation as ablation_experiment
from facetwalk.experiments import gradients as gradients_experiment
from facetwalk.experiments import landscape as landscape_experiment
from facetwalk.experiments import runtime as runtime_experiment
from facetwalk.experiments import sigmoid as sigmoid_experiment
from facetwalk.experiments import toy as toy_experiment

Models = Annotated[list[str] | None, typer.Option(help="A, B or C; may be repeated. All without.")]
Networks = Annotated[int, typer.Option(min=1, help="Random networks of each model.")]
Seeds = Annotated[int, typer.Option(min=1, help="How often each method runs.")]
_ALL = ("A", "B", "C")


def toy(
    out: Out,
    quick: Quick = False,
    figure_only: FigureOnly = False,
    quiet: options.Quiet = False,
) -> None:
    """Show on one input what gates are for."""
    run_experiment(
        toy_experiment.TOY,
        lambda: toy_experiment.Request(quick),
        toy_experiment.plan,
        out,
        figure_only,
        quiet,
    )


def landscape(
    out: Out,
    quick: Quick = False,
    figure_only: FigureOnly = False,
    quiet: options.Quiet = False,
) -> None:
    """Draw a network of two inputs, its hyperplanes, and the ways that methods take."""
    run_experiment(
        landscape_experiment.LANDSCAPE,
        lambda: landscape_experiment.Request(quick),
        landscape_experiment.plan,
        out,
        figure_only,
        quiet,
    )


def gradients(
    out: Out,
    data: Data = None,
    nets: Nets = None,
    networks: Networks = 16,
    device: attack_options.Device = "cpu",
    quick: Quick = False,
    figure_only: FigureOnly = False,
    quiet: options.Quiet = False,
) -> None:
    """Measure how far gradients can be trusted: steps that leave their polytope."""

    def ask() -> gradients_experiment.Request:
        check_device(device)
        return gradients_experiment.Request(nets, data, networks, device, quick)

    run_experiment(
        gradients_experiment.GRADIENTS, ask, gradients_experiment.plan, out, figure_only, quiet
    )


def sigmoid(
    out: Out,
    model: Models = None,
    networks: Networks = 64,
    seeds: Seeds = 3,
    device: attack_options.Device = "cpu",
    quick: Quick = False,
    figure_only: FigureOnly = False,
    quiet: options.Quiet = False,
) -> None:
    """Run ADR-GD with gates of different sharpness."""

    def ask() -> sigmoid_experiment.Request:
        check_device(device)
        return sigmoid_experiment.Request(tuple(model or _ALL), networks, seeds, device, quick)

    run_experiment(
        sigmoid_experiment.SIGMOID, ask, sigmoid_experiment.plan, out, figure_only, quiet
    )


def ablation(
    out: Out,
    model: Models = None,
    networks: Networks = 64,
    seeds: Seeds = 3,
    device: attack_options.Device = "cpu",
    quick: Quick = False,
    figure_only: FigureOnly = False,
    quiet: options.Quiet = False,
) -> None:
    """Maximise random networks with every method, and with ADR-GD without its parts."""

    def ask() -> ablation_experiment.Request:
        check_device(device)
        return ablation_experiment.Request(tuple(model or _ALL), networks, seeds, device, quick)

    run_experiment(
        ablation_experiment.ABLATION, ask, ablation_experiment.plan, out, figure_only, quiet
    )


def runtime(
    out: Out,
    device: attack_options.Device = "cpu",
    quick: Quick = False,
    figure_only: FigureOnly = False,
    quiet: options.Quiet = False,
) -> None:
    """Time a step of ADR-GD beside one of PGD."""

    def ask() -> runtime_experiment.Request:
        check_device(device)
        return runtime_experiment.Request(device, quick)

    run_experiment(
        runtime_experiment.RUNTIME, ask, runtime_experiment.plan, out, figure_only, quiet
    )
