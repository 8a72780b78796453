"""Options that the commands about robustness share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from facetwalk.cli.space_choice import Pair

Data = Annotated[
    str | None,
    typer.Option(help="digits, or with --folder mnist, fashion-mnist, cifar10 or imagenet."),
]
Folder = Annotated[Path | None, typer.Option(help="Where the files of --data lie.")]
Images = Annotated[Path | None, typer.Option(help="Images of your own: .npy, .npz or .pt.")]
Labels = Annotated[Path | None, typer.Option(help="Their true classes: .npy, .npz or .pt.")]
First = Annotated[int, typer.Option(min=0, help="Number of the first image.")]
Samples = Annotated[int | None, typer.Option(min=1, help="How many images; all by default.")]
Eps = Annotated[
    str, typer.Option(help="How far a point may be from its image, as in 0.3 or 8/255.")
]
Norm = Annotated[str, typer.Option(help="In which that is measured: inf, 2 or 1, also as Linf.")]
Bounds = Annotated[Pair, typer.Option(help="Of every pixel.")]
Budget = Annotated[int, typer.Option(min=1, help="Gradient evaluations of each image.")]
Device = Annotated[str, typer.Option(help="cpu or cuda.")]
