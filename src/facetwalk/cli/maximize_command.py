"""`facetwalk maximize`: find inputs with a high objective."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from torch import Tensor

import facetwalk
from facetwalk.cli import options
from facetwalk.cli.files import read_floats
from facetwalk.cli.maximize_output import as_data, show_result
from facetwalk.cli.model_choice import make_model
from facetwalk.cli.notes import affine_notes
from facetwalk.cli.objective_choice import make_objective
from facetwalk.cli.output import say
from facetwalk.cli.results import (
    Output,
    check_outputs,
    write_array,
    write_json,
)
from facetwalk.cli.solver_choice import SolverOptions, make_solver
from facetwalk.cli.space_choice import Pair, SpaceOptions, fraction, make_space
from facetwalk.cli.trace_figure import draw_trace
from facetwalk.experiments.drawing import check_drawable, save_figure


def maximize(
    model: options.Model,
    box: Annotated[
        Pair | None, typer.Option(help="Search where every entry is between these bounds.")
    ] = None,
    around: Annotated[
        Path | None, typer.Option(help="Search around each input of this file: .npy, .npz or .pt.")
    ] = None,
    eps: Annotated[
        str | None, typer.Option(help="Radius of the balls around them, as in 0.3 or 8/255.")
    ] = None,
    norm: Annotated[
        str | None, typer.Option(help="Norm of the balls: inf, 2 or 1; inf by default.")
    ] = None,
    bounds: Annotated[
        Pair | None, typer.Option(help="Bounds on every entry in the balls, 0 1 for images.")
    ] = None,
    objective: Annotated[
        str,
        typer.Option(
            help="output:INDEX, -output:INDEX, or margin, cross-entropy, dlr, targeted-margin, "
            "targeted-cross-entropy with :LABELS, or targeted-dlr:LABELS:TARGETS. LABELS is a "
            "class, one for each problem as in 3,5,8, or a file."
        ),
    ] = "output:0",
    evaluations: Annotated[
        int | None,
        typer.Option(help="Gradients that auto spends on each start of a problem; 1000 without."),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(help="Time for all problems together; auto plans for it."),
    ] = None,
    solver: Annotated[str, typer.Option(help="See facetwalk solvers.")] = "auto",
    preset: Annotated[
        str | None, typer.Option(help="Of adr-gd: paper, released or released-attack.")
    ] = None,
    experiment: Annotated[
        str | None, typer.Option(help="Of adr-gd: the paper's parameters, as in model-a.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Set a field of the solver: field=value, and for one within it inner=sign or "
            "inner.steps=25. Repeatable.",
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Steps of each start, where the solver is not auto.")
    ] = None,
    starts: Annotated[int, typer.Option(help="Starts of each problem; the best counts.")] = 1,
    seed: options.Seed = 0,
    x0: Annotated[
        str, typer.Option(help="First start: center, sample (random) or a file of inputs.")
    ] = "center",
    batch_size: Annotated[
        int | None, typer.Option(help="Most rows (problems x starts x population) to run at once.")
    ] = None,
    stop_at: Annotated[
        float | None, typer.Option(help="A problem that reaches this value is finished.")
    ] = None,
    shape: options.Shape = None,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    json: options.Json = None,
    save: Annotated[Path | None, typer.Option(help="Write the best inputs to this .npy.")] = None,
    figure: Annotated[
        Path | None, typer.Option(help="Draw best value against gradients to this .png.")
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Find inputs of a network with a high objective."""
    check_outputs(
        [
            Output("--json", json, ".json"),
            Output("--save", save, ".npy"),
            Output("--figure", figure),
        ],
        reads=[model, around, x0, objective],
    )
    if figure is not None:
        check_drawable(figure)
    loaded = make_model(model, seed, shape, device)
    radius = None if eps is None else fraction(eps)
    problem = facetwalk.Problem(
        loaded.model,
        make_objective(objective),
        make_space(SpaceOptions(box, around, radius, norm, bounds), loaded),
    )
    chosen = make_solver(
        SolverOptions(solver, preset, experiment, steps, evaluations, settings or ())
    )
    with affine_notes() as notes:
        result = facetwalk.maximize(
            problem,
            solver=chosen,
            evaluations=evaluations,
            seconds=seconds,
            x0=_first_start(x0, loaded.input_shape),
            starts=starts,
            seed=seed,
            batch_size=batch_size,
            stop_at=stop_at,
            trace=json is not None or figure is not None,
            progress=sys.stderr.isatty() and not quiet,
        )
    show_result(result, solver, starts)
    say(*(f"note: {note}" for note in notes))
    if json is not None:
        asked: dict[str, Any] = {
            "model": loaded.name,
            "objective": objective,
            "space": {"box": box, "around": around, "eps": radius, "norm": norm, "bounds": bounds},
            "x0": x0,
            "starts": starts,
            "stop_at": stop_at,
            "device": device,
            "asked": {"solver": chosen, "seconds": seconds},
        }
        write_json(json, asked | as_data(result) | {"notes": notes})
    if save is not None:
        write_array(save, result.x.cpu().numpy())
    if figure is not None:
        save_figure(draw_trace(result, solver), figure)


def _first_start(x0: str, shape: tuple[int, ...]) -> Tensor | Literal["center", "sample"]:
    if x0 == "center" or x0 == "sample":
        return x0
    return read_floats(Path(x0), shape)
