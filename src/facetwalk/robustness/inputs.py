"""What users pass: images, labels and seeds, checked and brought to the model's device."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from facetwalk.messages import reason
from facetwalk.models import require_eval
from facetwalk.robustness.surroundings import bounds_of
from facetwalk.spaces import Bounds
from facetwalk.types import InputError, ModelError, whole_number

MOST_ROWS = 512
"""Of a pass that only looks."""
_MOST_SEED = 2**62
"""There is room for the numbers of images above it."""


class Images(Sized, Protocol):
    """A tensor `(N, *shape)`, or anything that gives one when it is sliced."""

    def __getitem__(self, part: slice, /) -> Any: ...


def require_classifier(model: object) -> None:
    """Raise `ModelError` for what is no module in eval mode."""
    if not isinstance(model, nn.Module):
        raise ModelError(
            f"the model must be a torch.nn.Module; it is a {type(model).__name__}: wrap a function "
            "in a module whose forward calls it"
        )
    if not all(hasattr(part, "training") for part in model.modules()):
        raise ModelError(
            "the model (or a part of it) is a frozen TorchScript module, which does not say in "
            "which mode it is: call model.eval() first"
        )
    require_eval(model)


def home_of(model: nn.Module) -> tuple[torch.device | None, torch.dtype | None]:
    """The device and the precision of a model; None if it has no weights, and follows its input."""
    for tensor in (*model.parameters(), *model.buffers()):
        if tensor.is_floating_point():
            return tensor.device, tensor.dtype
    return None, None


def check_images(given: Any) -> None:
    """Raise `InputError` for what are no images `(N, *shape)`."""
    if not isinstance(given, Tensor) or given.ndim < 2:
        raise InputError(
            "images must be a tensor (N, *shape), a row for each; for one image pass image[None]"
        )
    if not given.is_floating_point():
        raise InputError(f"the images are {given.dtype}: pass floats, usually images / 255")
    if not bool(torch.isfinite(given).all()):
        raise InputError("the images hold NaN or infinite values")


def as_images(given: Any, model: nn.Module, bounds: Bounds | None) -> Tensor:
    """Images `(N, *shape)` on the model's device and in its precision; `InputError` if they are
    no images."""
    check_images(given)
    device, dtype = home_of(model)
    images = _for_autograd(given.detach().to(device or given.device, dtype or given.dtype))
    if bounds is not None:
        _check_bounds(images, bounds)
    return images


def _check_bounds(images: Tensor, bounds: Bounds) -> None:
    low, high = bounds_of(bounds, images)
    if bool(((images < low) | (images > high)).any()):
        raise InputError(
            f"the images run from {images.min():.3g} to {images.max():.3g}, outside the bounds "
            f"{low.min():.3g} and {high.max():.3g}: if they are normalised, put the normalisation "
            "into the model (facetwalk.zoo.Normalize) and pass the images as they were; if not, "
            "give the bounds that they have"
        )


def as_classes(given: Any, count: int, device: torch.device, what: str) -> Tensor:
    """Class indices `(N,)`; `InputError` if they are none, or not so many."""
    classes = _as_tensor(given)
    if classes is None:
        raise InputError(f"{what} must be class indices, an integer for each image")
    if classes.ndim != 1 or (len(classes) and not _holds_integers(classes)):
        raise InputError(
            f"{what} must be class indices, an integer for each image; they are "
            f"{classes.dtype} of shape {tuple(classes.shape)}"
        )
    if len(classes) != count:
        raise InputError(f"there are {count} images and {len(classes)} {what}")
    return _for_autograd(classes.long().to(device))


def as_seed(given: object) -> int:
    """A seed as an int; `InputError` if it is none.

    >>> as_seed(2**63)
    Traceback (most recent call last):
    facetwalk.types.InputError: seed must lie within 2^62 of 0; it is 9223372036854775808
    """
    seed = whole_number("seed", given)
    if abs(seed) > _MOST_SEED:
        raise InputError(f"seed must lie within 2^62 of 0; it is {seed}")
    return seed


def as_seeds(given: int | Tensor, count: int, device: torch.device) -> Tensor:
    """A seed for each image, int64 `(N,)`."""
    seeds = _as_tensor(given)
    if seeds is None or (not seeds.ndim and _holds_integers(seeds)):
        return as_seed(given) + torch.arange(count, device=device)
    if not _holds_integers(seeds) or seeds.shape != (count,):
        raise InputError(
            f"seed must be a whole number, or an integer tensor with one for each of the {count} "
            f"images; it is {seeds.dtype} of shape {tuple(seeds.shape)}"
        )
    return seeds.long().to(device)


def as_rows(batch_size: int | None) -> int:
    """How many rows a pass that only looks may have."""
    if batch_size is None:
        return MOST_ROWS
    return min(MOST_ROWS, whole_number("batch_size", batch_size, at_least=1))


def _as_tensor(given: Any) -> Tensor | None:
    """None if it cannot be one."""
    try:
        return torch.as_tensor(given)
    except (TypeError, ValueError, RuntimeError):
        return None


def _for_autograd(tensor: Tensor) -> Tensor:
    """The same; one of inference mode, which no gradient passes, is copied."""
    return tensor.clone() if tensor.is_inference() else tensor


def _holds_integers(tensor: Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)


def outputs_of(model: nn.Module, images: Tensor, rows: int = MOST_ROWS) -> Tensor:
    """The model's outputs `(N, classes)` at images `(N, *shape)`, so many rows at once."""
    return torch.cat([_of_one_pass(model, part) for part in images.split(rows)])


def logits_of(
    model: nn.Module, images: Tensor, classes: dict[str, Tensor], rows: int = MOST_ROWS
) -> Tensor:
    """The model's outputs, where they are logits `(N, classes)` that these indices fit."""
    logits = outputs_of(model, images, rows)
    wrong = (~torch.isfinite(logits.amax(1))).sum().item()
    if wrong:
        raise ModelError(
            f"the model returns NaN or infinite logits for {wrong} of {len(images)} images"
        )
    for what, given in classes.items():
        if len(given) and bool(((given < 0) | (given >= logits.shape[1])).any()):
            raise InputError(
                f"{what} run from {int(given.min())} to {int(given.max())}, and the model has "
                f"classes 0 to {logits.shape[1] - 1}"
            )
    return logits


def _of_one_pass(model: nn.Module, images: Tensor) -> Tensor:
    with torch.no_grad():
        try:
            outputs = model(images.clone())
        except Exception as error:
            raise ModelError(
                f"the model fails on images of shape {tuple(images.shape)} and type "
                f"{images.dtype}: {error}"
            ) from error
    if not isinstance(outputs, Tensor) or outputs.ndim != 2 or len(outputs) != len(images):
        shape = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
        raise ModelError(
            f"a classifier must return logits (N, classes); for {len(images)} images this one "
            f"returned {shape}"
        )
    if outputs.shape[1] < 2:
        raise ModelError(
            "the model has one output, and a classifier needs a logit for each class: for two "
            "classes return the logits (-z, z)"
        )
    return outputs


def require_gradient(model: nn.Module, images: Tensor) -> None:
    """Raise `ModelError` if no gradient passes from the model's outputs to its images."""
    leaf = images.detach().requires_grad_()
    try:
        with torch.enable_grad():
            outputs = model(leaf.clone())
            reached = outputs.requires_grad and any(
                gradient is not None
                for gradient in torch.autograd.grad(outputs.sum(), leaf, allow_unused=True)
            )
    except Exception as error:
        raise ModelError(
            "the model fails where its gradient is asked for, which attacks follow: "
            f"{reason(error)}"
        ) from error
    if not reached:
        raise ModelError(
            "no gradient passes from the model's outputs to its images, and attacks follow one: "
            "look for torch.no_grad, detach, argmax or numpy in its forward"
        )
