"""`facetwalk inspect`: the ReLUs of a network."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from torch import Tensor

from facetwalk import Box
from facetwalk.cli import options
from facetwalk.cli.files import read_inputs
from facetwalk.cli.inspection import Inspection, inspect_model
from facetwalk.cli.model_choice import make_model, require_relus
from facetwalk.cli.output import say, show_table
from facetwalk.cli.results import Output, check_outputs, write_json
from facetwalk.cli.space_choice import Pair, make_box
from facetwalk.streams import Streams
from facetwalk.zoo import digits

_USUAL_BOX = (-1.0, 1.0)


def inspect(
    model: options.Model,
    shape: options.Shape = None,
    inputs: Annotated[
        Path | None, typer.Option(help="Count live neurons on these: .npy, .npz or .pt.")
    ] = None,
    box: Annotated[
        Pair | None,
        typer.Option(help="Without inputs, count on random points of this box, -1 1 by default."),
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="How many random points.")] = 64,
    seed: options.Seed = 0,
    json: options.Json = None,
) -> None:
    """Show the sites (calls of a ReLU) of a network and the share of live neurons at each."""
    check_outputs([Output("--json", json, ".json")], reads=[model, inputs])
    loaded = make_model(model, seed, shape)
    low, high = box or _USUAL_BOX
    space = make_box((low, high), loaded)
    if inputs is not None:
        x, points = read_inputs(inputs, loaded.input_shape).to(loaded.dtype), f"inputs of {inputs}"
    elif model == "digits" and box is None:
        x, points = digits("test")[0], "test images"
    else:
        x, points = _sample(space, samples, seed), f"random points of the box {low:g} {high:g}"
    require_relus(loaded)
    inspection = inspect_model(loaded.model, x, _sample(space, 1, seed, stream=1))
    about = {
        "model": loaded.name,
        "input_shape": loaded.input_shape,
        "points": f"{len(x)} {points}",
    }
    _show(about, inspection)
    if json is not None:
        write_json(json, about | _as_data(inspection))


def _sample(space: Box, count: int, seed: int, stream: int = 0) -> Tensor:
    """Random points `(count, *shape)`; another stream gives others."""
    seeds = seed + torch.arange(count)
    return space.sample(Streams.from_seeds(seeds, torch.full_like(seeds, stream)))


def _show(about: dict[str, Any], inspection: Inspection) -> None:
    say(
        f"{about['model']}, inputs {about['input_shape']}",
        f"Share of live neurons on {about['points']}:",
    )
    rows = [
        [site.name, site.op, _by(site.shape), f"{site.neurons:,}", f"{share:.1%}"]
        for site, share in zip(inspection.sites, inspection.live, strict=True)
    ]
    show_table(
        ["name", "op", "shape", "neurons", "live"],
        rows,
        total=["total", "", "", f"{inspection.neurons:,}", f"{inspection.live_overall:.1%}"],
        words=["name", "op", "shape"],
    )
    if not inspection.notes:
        say("The network is affine once its gates are frozen (audited between two points).")
    say(*(f"note: {note}" for note in inspection.notes))


def _by(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def _as_data(inspection: Inspection) -> dict[str, Any]:
    pairs = zip(inspection.sites, inspection.live, strict=True)
    return {
        "sites": [asdict(s) | {"neurons": s.neurons, "live": share} for s, share in pairs],
        "neurons": inspection.neurons,
        "live": inspection.live_overall,
        "affine": not inspection.notes,
        "notes": inspection.notes,
    }
