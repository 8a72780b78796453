"""`facetwalk demo`: attacks on handwritten digits, compared at equal cost."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from facetwalk.cli import options
from facetwalk.cli.demo_output import show_demo, write_demo
from facetwalk.cli.output import say
from facetwalk.experiments.digits_demo import run
from facetwalk.experiments.drawing import check_drawable
from facetwalk.writing import make_folder


def demo(
    out: Annotated[Path, typer.Option(help="Folder for demo.json, demo.npz and demo.png.")] = Path(
        "facetwalk-demo"
    ),
    images: Annotated[int, typer.Option(help="Test images to attack.")] = 100,
    evaluations: Annotated[int, typer.Option(help="Gradients of each method an image.")] = 1000,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """Attack handwritten digits with several methods at equal numbers of gradients."""
    check_drawable(out / "demo.png")
    make_folder(out)
    result = run(images, evaluations, seed, progress=sys.stderr.isatty() and not quiet)
    show_demo(result)
    write_demo(result, out)
    say(f"Wrote demo.json, demo.npz and demo.png to {out}.")
