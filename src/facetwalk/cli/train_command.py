"""`facetwalk train`: make image classifiers, natural or robust."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from facetwalk import InputError
from facetwalk.cli import attack_options, options
from facetwalk.cli.model_choice import check_device
from facetwalk.cli.output import say, say_wrapped, show_table
from facetwalk.cli.recipe_choice import Changes, make_recipes
from facetwalk.cli.space_choice import fraction
from facetwalk.cli.stopping import goes_on
from facetwalk.training import RECIPES, make


def train(
    names: Annotated[
        list[str] | None, typer.Argument(help="Recipes, as --list shows them.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder with the files of MNIST or CIFAR-10.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for weights and records.")] = None,
    device: attack_options.Device = "cpu",
    epochs: Annotated[int | None, typer.Option(min=1, help="How often each image is seen.")] = None,
    images: Annotated[
        int | None, typer.Option(min=1, help="Use only so many images of each split.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Of weights and all random numbers.")
    ] = None,
    learning_rate: Annotated[float | None, typer.Option(help="The highest one.")] = None,
    method: Annotated[str | None, typer.Option(help="natural, fgsm, pgd or free.")] = None,
    architecture: Annotated[str | None, typer.Option(help="As --list shows them.")] = None,
    eps: Annotated[
        str | None, typer.Option(help="Radius of the perturbations, as in 0.3 or 8/255.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="What a recipe with other settings is to be called.")
    ] = None,
    budget: Annotated[
        int, typer.Option(min=1, help="Gradients an image when robustness is measured.")
    ] = 300,
    restart: Annotated[
        bool, typer.Option("--restart", help="Begin anew; otherwise go on where it was.")
    ] = False,
    recipes: Annotated[
        bool, typer.Option("--list", help="Show the recipes and do nothing else.")
    ] = False,
    quiet: options.Quiet = False,
) -> None:
    """Train image classifiers by recipes, natural or against perturbations, and measure them."""
    if recipes:
        _show_recipes()
        return
    radius = None if eps is None else fraction(eps)
    changes = Changes(epochs, seed, learning_rate, method, architecture, radius)
    chosen = make_recipes(names or [], changes, name)
    if data is None or out is None:
        raise InputError("say where the data lie and where results go: --data FOLDER --out FOLDER")
    check_device(device)
    with goes_on("the same command without --restart" if restart else "the same command"):
        records = [
            make(
                recipe,
                data,
                out,
                device=device,
                images=images,
                budget=budget,
                restart=restart,
                command=shlex.join(["facetwalk", *sys.argv[1:]]),
                progress=not quiet,
            )
            for recipe in chosen
        ]
    _show(records)
    say(f"Weights and records are in {out}.")


def _show(records: list[dict[str, Any]]) -> None:
    columns = ["network", "eps", "accuracy", "robust", "under PGD", "seconds"]
    rows = [
        [
            record["training"]["name"],
            f"{record['test']['radius']:.3f}",
            f"{record['test']['clean_accuracy']:.2%}",
            f"{record['test']['robust_accuracy']:.2%}",
            f"{record['test']['pgd_accuracy']:.2%}",
            f"{record['seconds']:,.0f}",
        ]
        for record in records
    ]
    show_table(columns, rows, words=["network"])
    for record in records:
        for finding in record["test"]["findings"]:
            say_wrapped(f"note on {record['training']['name']}: {finding}")


def _show_recipes() -> None:
    columns = ["recipe", "architecture", "method", "eps", "epochs", "rate"]
    rows = [
        [
            recipe.name,
            recipe.architecture,
            recipe.method,
            f"{recipe.radius:.3f}",
            str(recipe.epochs),
            f"{recipe.learning_rate:g}",
        ]
        for recipe in RECIPES.values()
    ]
    show_table(columns, rows, words=columns[:3])
