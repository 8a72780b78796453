"""`facetwalk optimum`: find the maximum of an objective, and prove it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from facetwalk import InputError, exact
from facetwalk.cli import options
from facetwalk.cli.model_choice import make_model, require_relus
from facetwalk.cli.objective_choice import make_objective
from facetwalk.cli.output import say, show_table
from facetwalk.cli.results import Output, check_outputs, write_json
from facetwalk.cli.space_choice import Pair, SpaceOptions, fraction, make_space

_ENTRIES = 16
"""The largest input that is printed."""


def optimum(
    model: options.Model,
    box: Annotated[
        Pair | None, typer.Option(help="Search where every entry is between these bounds.")
    ] = None,
    around: Annotated[
        Path | None, typer.Option(help="Search around the one input of this file.")
    ] = None,
    eps: Annotated[
        str | None, typer.Option(help="How far each entry may move from it, as in 0.3 or 8/255.")
    ] = None,
    bounds: Annotated[
        Pair | None, typer.Option(help="Bounds on every entry there, 0 1 for images.")
    ] = None,
    objective: Annotated[
        str,
        typer.Option(help="output:INDEX, -output:INDEX, margin:LABEL or targeted-margin:LABEL."),
    ] = "output:0",
    time: Annotated[float, typer.Option(help="Seconds after which the bound is what it is.")] = 60,
    gap: Annotated[
        float, typer.Option(help="How far the bound may be above the best value for a proof.")
    ] = 1e-2,
    engine: Annotated[
        str, typer.Option(help="auto, boxes (few inputs) or milp (few neurons that may change).")
    ] = "auto",
    seed: options.Seed = 0,
    shape: options.Shape = None,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    json: options.Json = None,
    quiet: options.Quiet = False,
) -> None:
    """Find the maximum of an objective over a box, with a bound that no input exceeds."""
    check_outputs([Output("--json", json, ".json")], reads=[model, around, objective])
    loaded = make_model(model, seed, shape, device)
    require_relus(loaded)
    options = SpaceOptions(box, around, None if eps is None else fraction(eps), None, bounds)
    space, score = make_space(options, loaded), make_objective(objective)
    if space.count != 1:
        raise InputError(
            f"{around} holds {space.count} inputs: save one of them in a file of its own"
        )
    if score.count != 1:
        raise InputError(f"{objective} has {score.count} labels: give one, for the one problem")
    proof = exact.maximize(
        loaded.model,
        space,
        score,
        time_limit=time,
        gap=gap,
        engine=engine,  # pyright: ignore[reportArgumentType] - checked there, in words
        seed=seed,
        progress=not quiet,
    )
    _show(proof)
    if json is not None:
        asked: dict[str, Any] = {
            "model": loaded.name,
            "objective": objective,
            "space": {"box": box, "around": around, "eps": options.eps, "bounds": bounds},
            "time": time,
            "gap": gap,
            "seed": seed,
            "device": device,
        }
        write_json(json, asked | {"proof": vars(proof)})


def _show(proof: exact.Proof) -> None:
    row = [
        f"{proof.value:.6f}",
        f"{proof.bound:.6f}",
        f"{proof.bound - proof.value:.2g}",
        "yes" if proof.proven else "no",
        proof.engine,
        f"{proof.nodes:,}",
        f"{proof.seconds:.1f}",
    ]
    columns = ["best", "bound", "gap", "proven", "engine", "nodes", "seconds"]
    show_table(columns, [row], words=["proven", "engine"])
    if proof.x.numel() <= _ENTRIES:
        say(f"x: {' '.join(f'{entry:.6g}' for entry in proof.x.flatten().tolist())}")
