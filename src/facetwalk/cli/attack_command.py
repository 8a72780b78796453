"""`facetwalk attack`: adversarial examples, and pictures of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import torch
import typer
from torch import Tensor

from facetwalk import InputError
from facetwalk.cli import attack_options, options
from facetwalk.cli.attack_output import arrays_of, as_data, show_attack
from facetwalk.cli.data_choice import DataOptions, make_data
from facetwalk.cli.model_choice import make_model
from facetwalk.cli.results import (
    Output,
    check_outputs,
    write_arrays,
    write_json,
)
from facetwalk.cli.space_choice import Pair, check_bounds, fraction
from facetwalk.experiments.attack_figure import Pictures, check_pictures, draw_attack
from facetwalk.experiments.drawing import check_drawable, save_figure
from facetwalk.robustness import attack as attack_images
from facetwalk.robustness.inputs import as_classes, as_images, logits_of
from facetwalk.streams import Streams
from facetwalk.zoo import Loaded


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
    radius = fraction(eps)
    loaded = make_model(model, seed, shape, device)
    chosen = make_data(DataOptions(data, folder, images, labels, first, samples), loaded)
    clean = chosen.images[: len(chosen.images)]
    logits, true = _logits(loaded, clean, chosen.labels, bounds)
    right = (logits.argmax(1) == true).cpu()
    if figure is not None:
        check_pictures(clean)
        _check_some_right(right)
    found = attack_images(
        loaded.model,
        clean,
        chosen.labels,
        radius,
        targets=_targets(targets, logits.shape[1], chosen.labels, seed),
        norm=norm,
        bounds=bounds,
        budget=budget,
        seed=seed,
        progress=sys.stderr.isatty() and not quiet,
    )
    show_attack(found, right, f"{loaded.name} on {chosen.name}; within {eps} in norm {norm}")
    if save is not None:
        write_arrays(save, arrays_of(clean, chosen.labels, found))
    if figure is not None:
        seen = (found.adversarial, chosen.labels, found.predicted, found.confidence)
        pictures = Pictures(clean[right], *(tensor.cpu()[right] for tensor in seen))
        title = f"{loaded.name}, within {eps}, at most {budget} gradients each"
        save_figure(draw_attack(pictures, title, chosen.classes), figure)
    if json is not None:
        about = {
            "model": loaded.name,
            "data": chosen.name,
            "targets": targets,
            "eps": radius,
            "norm": norm,
            "bounds": bounds,
            "budget": budget,
            "seed": seed,
        }
        write_json(json, about | as_data(found, right))


def _logits(loaded: Loaded, clean: Tensor, labels: Tensor, bounds: Pair) -> tuple[Tensor, Tensor]:
    """The model's logits without an attack, and the true classes, on its device."""
    given = as_images(clean, loaded.model, bounds)
    true = as_classes(labels, len(given), given.device, "labels")
    return logits_of(loaded.model, given, {"labels": true}), true


def _check_some_right(right: Tensor) -> None:
    if not right.any():
        raise InputError(
            "the model gets every one of these images wrong without an attack, so there is none "
            "to draw: leave out --figure"
        )


def _targets(asked: str | None, classes: int, labels: Tensor, seed: int) -> Tensor | None:
    if asked is None:
        return None
    if asked == "random":
        numbers = seed + torch.arange(len(labels))
        drawn = Streams.from_seeds(numbers, torch.zeros_like(numbers)).uniform(())
        return (labels + 1 + (drawn * (classes - 1)).long()) % classes
    if not asked.isdecimal():
        raise InputError(f"--targets must be a class or random; it is {asked!r}")
    return torch.full_like(labels, int(asked))
