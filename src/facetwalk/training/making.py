"""Makes a network from a recipe and files of data: weights, and a record beside them."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from facetwalk.data import load
from facetwalk.digests import digest
from facetwalk.progress import progress_report
from facetwalk.training.checkpoint import Checkpoint, check_same
from facetwalk.training.fitting import train
from facetwalk.training.inputs import as_examples, require_recipe
from facetwalk.training.measuring import measure
from facetwalk.training.recipe import Recipe
from facetwalk.types import InputError, MissingExtraError, whole_number
from facetwalk.writing import make_folder, write_whole
from facetwalk.zoo import fresh_net


def make(
    recipe: Recipe,
    data: Path | str,
    out: Path | str,
    *,
    device: str = "cpu",
    images: int | None = None,
    budget: int = 300,
    restart: bool = False,
    command: str = "",
    progress: bool = False,
) -> dict[str, Any]:
    """Train a network, measure it, write both to a folder, and return the record.

    `NAME.safetensors` are its weights, `NAME.json` is the record. `NAME.checkpoint` is there while
    it trains: run again after an interruption, training goes on from it. A network that is finished
    is not made again.

    Args:
        data: folder with the published files of the recipe's data.
        out: folder for what is made.
        device: "cpu" or "cuda".
        images: use only so many of each split.
        budget: gradient evaluations of each image when robust accuracy is measured.
        restart: begin anew; what is there by this name is removed, once it is sure that the data
            can be trained on.
        command: how to make it again, for the record.
        progress: whether to show how far it has come.

    >>> from facetwalk.training import recipe_of
    >>> make(recipe_of("mnist-natural"), Path("nowhere"), Path("/tmp"))
    Traceback (most recent call last):
    facetwalk.types.InputError: there is no folder nowhere...
    """
    require_recipe(recipe)
    _check_device(device)
    budget = whole_number("budget", budget, at_least=1)
    if images is not None:
        images = whole_number("images", images, at_least=1)
    data, out = Path(data), Path(out)
    check_safetensors()
    make_folder(out)
    record_file, weights_file = (out / f"{recipe.name}.{kind}" for kind in ("json", "safetensors"))
    seen, test = (_read(recipe, data, split, images) for split in ("train", "test"))
    asked = {**asdict(recipe), "images": len(seen[0]), "data_digest": digest(seen)}
    checkpoint = Checkpoint(out / f"{recipe.name}.checkpoint", {**asked, "device": device})
    if restart:
        as_examples(fresh_net(recipe.architecture), *seen, recipe.architecture)
        for file in (record_file, weights_file, checkpoint.path):
            file.unlink(missing_ok=True)
    if record_file.exists():
        record = _finished(record_file, asked)
        if weights_file.exists():
            return record
    elif weights_file.exists() and not checkpoint.path.exists():
        raise InputError(
            f"{weights_file} is there without the record of its training: add --restart to write "
            "over it, or choose another folder"
        )
    with repeatable_convolutions(), progress_report(progress, recipe.name) as report:
        trained = train(recipe, *_on(device, seen), checkpoint=checkpoint, report=report)
    record = {
        "training": asked,
        "test": measure(trained.net, *_on(device, test), recipe.radius, budget, progress),
        "history": trained.history,
        "weights_digest": digest(trained.net.state_dict().values()),
        "seconds": round(trained.seconds, 3),
        "command": command,
        "torch": torch.__version__,
        "machine": machine(device),
    }
    write_whole(weights_file, as_safetensors(trained.net))
    write_whole(record_file, (json.dumps(record, indent=1) + "\n").encode())
    checkpoint.remove()
    return record


def check_safetensors() -> None:
    """Raises `MissingExtraError` before a training whose weights could not be saved."""
    try:
        import safetensors.torch  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("saving trained networks", "demo") from error


def _check_device(device: str) -> None:
    if device not in ("cpu", "cuda"):
        raise InputError(f"device must be 'cpu' or 'cuda'; it is {device!r}")
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("there is no CUDA device here: use device='cpu'")


def _read(recipe: Recipe, data: Path, split: str, count: int | None) -> tuple[Tensor, Tensor]:
    """Images `(N, C, H, W)` and labels `(N,)`."""
    found = load(recipe.data, data, split)
    assert isinstance(found.images, Tensor)
    return found.images[:count], found.labels[:count]


def _on(device: str, split: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    return split[0].to(device), split[1].to(device)


def _finished(record_file: Path, asked: dict[str, Any]) -> dict[str, Any]:
    """The record of a network that is there already, if it is the one that was asked for."""
    try:
        record = json.loads(record_file.read_text())
        known = dict(record["training"])
    except (ValueError, LookupError, TypeError) as error:
        raise InputError(
            f"{record_file} is no record of a training: add --restart to write over it"
        ) from error
    check_same(record_file, known, asked)
    return record


@contextmanager
def repeatable_convolutions() -> Iterator[None]:
    """Lets cuDNN take only algorithms that give the same result each time, and always the same."""
    cudnn = torch.backends.cudnn
    before = cudnn.benchmark, cudnn.deterministic
    cudnn.benchmark, cudnn.deterministic = False, True
    try:
        yield
    finally:
        cudnn.benchmark, cudnn.deterministic = before


def as_safetensors(net: nn.Module) -> bytes:
    """Its weights as a `.safetensors` file has them; those that go by two names are there twice."""
    from safetensors.torch import save

    weights = {name: value.cpu() for name, value in net.state_dict().items()}
    same = torch.contiguous_format
    return save({name: value.clone(memory_format=same) for name, value in weights.items()})


def machine(device: str) -> str:
    """What something was made on, in words."""
    if device == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{platform.machine()}, {torch.get_num_threads()} threads"
