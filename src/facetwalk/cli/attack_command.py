"""`facetwalk attack`: adversarial examples, and pictures of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from torch import Tensor

from facetwalk import InputError
from facetwalk.cli import attack_options, options
from facetwalk.cli.data_choice import Chosen, DataOptions, fraction, make_data
from facetwalk.cli.files import check_writable, write_json
from facetwalk.cli.model_choice import make_model
from facetwalk.cli.output import say, show_table
from facetwalk.experiments.attack_figure import Pictures, check_pictures, draw_attack
from facetwalk.experiments.drawing import check_drawable, save_figure
from facetwalk.robustness import Attack
from facetwalk.robustness import attack as attack_images
from facetwalk.robustness.inputs import as_images, logits_of
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
    check_writable(save, figure, json)
    if figure is not None:
        check_drawable(figure)
    radius = fraction(eps)
    loaded = make_model(model, seed, shape, device)
    chosen = make_data(DataOptions(data, folder, images, labels, first, samples), loaded)
    clean = chosen.images[: len(chosen.images)]
    if figure is not None:
        check_pictures(clean)
    found = attack_images(
        loaded.model,
        clean,
        chosen.labels,
        radius,
        targets=_targets(targets, loaded, clean, chosen, seed),
        norm=norm,
        bounds=bounds,
        budget=budget,
        seed=seed,
        progress=sys.stderr.isatty() and not quiet,
    )
    _show(found, f"{loaded.name} on {chosen.name}; within {eps} in norm {norm}")
    if save is not None:
        arrays: dict[str, Any] = _arrays(clean, chosen.labels, found)
        with save.open("wb") as file:  # numpy would add .npz to other names
            np.savez_compressed(file, **arrays)
    if figure is not None:
        seen = (found.adversarial, chosen.labels, found.predicted, found.confidence)
        pictures = Pictures(clean, *(tensor.cpu() for tensor in seen))
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
        write_json(json, about | _data(found))


def _targets(
    asked: str | None, loaded: Loaded, clean: Tensor, chosen: Chosen, seed: int
) -> Tensor | None:
    if asked is None:
        return None
    classes = logits_of(loaded.model, as_images(clean[:1], loaded.model, None), {}).shape[1]
    if asked == "random":
        numbers = seed + torch.arange(len(chosen.labels))
        drawn = Streams.from_seeds(numbers, torch.zeros_like(numbers)).uniform(())
        return (chosen.labels + 1 + (drawn * (classes - 1)).long()) % classes
    if not asked.isdecimal():
        raise InputError(f"--targets must be a class or random; it is {asked!r}")
    return torch.full_like(chosen.labels, int(asked))


def _show(found: Attack, title: str) -> None:
    say(title)
    count = len(found.success)
    rows = [
        ["images", f"{count:,}"],
        ["success", f"{found.success.float().mean().item():.2%}"],
        ["mean margin", f"{found.margin.mean().item():.4g}"],
        ["mean cross-entropy", f"{found.loss.mean().item():.4g}"],
        ["gradients an image", f"{found.gradients.float().mean().item():,.0f}"],
        ["seconds", f"{found.seconds:,.1f}"],
    ]
    show_table(["", "value"], rows, words=[""])
    doubtful = int(found.depends_on_batch.sum())
    if doubtful:
        say(f"note: {doubtful} images succeed in a batch and not alone; they count as failures")


def _arrays(clean: Tensor, labels: Tensor, found: Attack) -> dict[str, np.ndarray]:
    tensors = {
        "images": clean,
        "adversarial": found.adversarial,
        "labels": labels,
        "predicted": found.predicted,
        "success": found.success,
    }
    return {
        name: (tensor.float() if tensor.is_floating_point() else tensor).cpu().numpy()
        for name, tensor in tensors.items()
    }


def _data(found: Attack) -> dict[str, object]:
    return {
        "success": found.success.tolist(),
        "margin": found.margin.tolist(),
        "loss": found.loss.tolist(),
        "predicted": found.predicted.tolist(),
        "depends_on_batch": found.depends_on_batch.tolist(),
        "gradients": found.gradients.tolist(),
        "seconds": found.seconds,
    }
