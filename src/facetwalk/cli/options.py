"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_LARGEST_SEED = 2**62

Model = Annotated[
    str,
    typer.Argument(
        help="digits, a network that ships such as mnist-cnn-0.3, random:10,64,64,1, net.onnx, "
        "net.safetensors, package.module:function or file.py:function."
    ),
]
Shape = Annotated[
    str | None,
    typer.Option(help="Shape of one input, as in 1,28,28, where the network does not tell it."),
]
Seed = Annotated[
    int, typer.Option(min=0, max=_LARGEST_SEED, help="Of random networks and random points.")
]
Json = Annotated[Path | None, typer.Option(help="Write the same as data to this file.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
