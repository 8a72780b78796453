"""`facetwalk attack`: adversarial examples, and pictures of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from facetwalk import InputError
from facetwalk.cli import attack_options, options
from facetwalk.cli.attack_before import Before, seen_before
from facetwalk.cli.attack_model import make_classifier
from facetwalk.cli.attack_output import arrays_of, as_data, show_attack
from facetwalk.cli.data_choice import DataOptions, make_data
from facetwalk.cli.results import Output, check_outputs, write_arrays, write_json
from facetwalk.cli.space_choice import check_bounds, fraction
from facetwalk.experiments.attack_figure import Pictures, check_pictures, draw_attack
from facetwalk.experiments.drawing import check_drawable, save_figure
from facetwalk.robustness import attack as attack_images
from facetwalk.robustness import check
from facetwalk.robustness.surroundings import Surroundings


def attack(
    model: options.Model,
    eps: attack_options.Eps,
    data: attack_options.Data = None,
    folder: attack_options.Folder = None,
    images: attack_options.Images = None,
    labels: attack_options.Labels = None,
    first: attack_options.First = 0,
    samples: attack_options.Samples = None,
    targets: Annotated[
        str | None,
        typer.Option(help="The class to reach, or random for a wrong one of each image."),
    ] = None,
    norm: attack_options.Norm = "inf",
    bounds: attack_options.Bounds = (0.0, 1.0),
    budget: attack_options.Budget = 1000,
    seed: options.Seed = 0,
    shape: options.Shape = None,
    device: attack_options.Device = "cpu",
    save: Annotated[
        Path | None, typer.Option(help="Write images, adversarial ones and classes to this .npz.")
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(help="Draw images, adversarial ones and differences to this.")
    ] = None,
    json: options.Json = None,
    quiet: options.Quiet = False,
) -> None:
    """Look for images near those given that a classifier gets wrong."""
    check_outputs(
        [
            Output("--json", json, ".json"),
            Output("--save", save, ".npz"),
            Output("--figure", figure),
        ],
        reads=[model, images, labels],
    )
    check_bounds(bounds)
    if figure is not None:
        check_drawable(figure)
    where = Surroundings.of(fraction(eps), norm, bounds)
    loaded = make_classifier(model, seed, shape, device)
    chosen = make_data(DataOptions(data, folder, images, labels, first, samples), loaded)
    clean = chosen.images[: len(chosen.images)]
    before = seen_before(loaded, clean, chosen.labels, bounds, targets, seed)
    drawn = before.right & ~before.there
    if figure is not None:
        check_pictures(clean)
        if not drawn.any():
            raise InputError(_nothing_to_draw(before))
    findings = check(loaded.model, clean, before.labels, bounds)
    found = attack_images(
        loaded.model,
        clean,
        before.labels,
        where.eps,
        targets=before.targets,
        norm=where.norm,
        bounds=bounds,
        budget=budget,
        seed=seed,
        progress=sys.stderr.isatty() and not quiet,
    )
    title = f"{loaded.name} on {chosen.name}; within {eps} in norm {where.norm}"
    show_attack(found, before, findings, title)
    if save is not None:
        write_arrays(save, arrays_of(clean, before, found))
    if figure is not None:
        seen = (clean, found.adversarial, before.labels, found.predicted, found.confidence)
        pictures = Pictures(
            *(tensor.cpu()[drawn] for tensor in seen),
            targets=None if before.targets is None else before.targets[drawn],
        )
        title = f"{loaded.name}, within {eps}, at most {budget} gradients each"
        save_figure(draw_attack(pictures, title, chosen.classes), figure)
    if json is not None:
        about = {
            "model": loaded.name,
            "data": chosen.name,
            "targets": targets,
            "eps": where.eps,
            "norm": where.norm,
            "bounds": bounds,
            "budget": budget,
            "seed": seed,
        }
        write_json(json, about | as_data(found, before, findings))


def _nothing_to_draw(before: Before) -> str:
    target = "" if before.targets is None else ", or sees its target there already"
    return (
        f"the model gets every one of these images wrong without an attack{target}, so there is "
        "none to draw: leave out --figure"
    )
