"""What users pass: images, labels and a norm, checked and brought to the model's device."""

from __future__ import annotations

import math
from collections.abc import Sized
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from facetwalk.models import require_eval
from facetwalk.spaces import BALLS, Bounds, Space
from facetwalk.types import InputError, ModelError

_NAMES = {math.inf: "inf", 2: "2", 1: "1"}


class Images(Sized, Protocol):
    """A tensor `(N, *shape)`, or anything that gives one when it is sliced."""

    def __getitem__(self, part: slice, /) -> Any: ...


@dataclass(frozen=True)
class Surroundings:
    """Where an attack may look: within `eps` of an image in a norm, and within bounds."""

    eps: float
    norm: str
    bounds: Bounds | None

    @classmethod
    def of(cls, eps: float, norm: str | float, bounds: Bounds | None) -> Surroundings:
        """Raises `InputError` for a norm that there is no ball of, no distance and no bounds."""
        name = _NAMES.get(norm) if isinstance(norm, (int, float)) else norm
        if not isinstance(name, str) or name not in BALLS:
            raise InputError(f"norm must be one of {', '.join(BALLS)}; it is {norm!r}")
        try:
            radius = float(eps)
        except (TypeError, ValueError, RuntimeError):
            radius = math.nan
        if not 0 <= radius < math.inf:
            raise InputError(f"eps must be a finite number, not negative; it is {eps!r}")
        if bounds is not None and not (isinstance(bounds, (tuple, list)) and len(bounds) == 2):
            raise InputError(f"bounds must be two, a lowest and a highest; they are {bounds!r}")
        return cls(radius, name, bounds)

    def around(self, images: Tensor) -> Space:
        """A ball for each image."""
        return BALLS[self.norm](images, self.eps, bounds=self.bounds)


def require_classifier(model: object) -> None:
    """Raise `ModelError` for what is no module in eval mode."""
    if not isinstance(model, nn.Module):
        raise ModelError(
            f"the model must be a torch.nn.Module; it is a {type(model).__name__}: wrap a function "
            "in a module whose forward calls it"
        )
    require_eval(model)


def home_of(model: nn.Module) -> tuple[torch.device | None, torch.dtype | None]:
    """The device and the precision of a model; None if it has no weights, and follows its input."""
    for tensor in (*model.parameters(), *model.buffers()):
        if tensor.is_floating_point():
            return tensor.device, tensor.dtype
    return None, None


def as_images(given: Any, model: nn.Module, bounds: Bounds | None) -> Tensor:
    """Images `(N, *shape)` on the model's device and in its precision; `InputError` if they are
    no images."""
    if not isinstance(given, Tensor) or given.ndim < 2:
        raise InputError(
            "images must be a tensor (N, *shape), a row for each; for one image pass image[None]"
        )
    if not given.is_floating_point():
        raise InputError(f"the images are {given.dtype}: pass floats, usually images / 255")
    if not bool(torch.isfinite(given).all()):
        raise InputError("the images hold NaN or infinite values")
    device, dtype = home_of(model)
    images = given.detach().to(device or given.device, dtype or given.dtype)
    if bounds is not None and len(images):
        _check_bounds(images, bounds)
    return images


def _check_bounds(images: Tensor, bounds: Bounds) -> None:
    low, high = (torch.as_tensor(b, dtype=images.dtype, device=images.device) for b in bounds)
    if bool(((images < low) | (images > high)).any()):
        raise InputError(
            f"the images run from {images.min():.3g} to {images.max():.3g}, outside the bounds "
            f"{low.min():.3g} and {high.max():.3g}: if they are normalised, put the normalisation "
            "into the model (facetwalk.zoo.Normalize) and pass the images as they were; if not, "
            "give the bounds that they have"
        )


def as_classes(given: Any, count: int, device: torch.device, what: str) -> Tensor:
    """Class indices `(N,)`; `InputError` if they are none, or not so many."""
    try:
        classes = torch.as_tensor(given)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"{what} must be class indices, an integer for each image") from None
    no_integers = classes.is_floating_point() or classes.dtype == torch.bool
    if classes.ndim != 1 or (no_integers and len(classes)):
        raise InputError(
            f"{what} must be class indices, an integer for each image; they are "
            f"{classes.dtype} of shape {tuple(classes.shape)}"
        )
    if len(classes) != count:
        raise InputError(f"there are {count} images and {len(classes)} {what}")
    return classes.long().to(device)


def as_seeds(given: int | Tensor, count: int, device: torch.device) -> Tensor:
    """A seed for each image, int64 `(N,)`."""
    seeds = torch.as_tensor(given, device=device)
    no_integers = seeds.is_floating_point() or seeds.dtype == torch.bool
    if no_integers or seeds.shape not in ((), (count,)):
        raise InputError(
            f"seed must be a whole number, or an integer tensor with one for each of the {count} "
            f"images; it is {seeds.dtype} of shape {tuple(seeds.shape)}"
        )
    return seeds.long() if seeds.ndim else seeds + torch.arange(count, device=device)


def logits_of(model: nn.Module, images: Tensor, classes: dict[str, Tensor]) -> Tensor:
    """The model's outputs, where they are logits `(N, classes)` that these indices fit."""
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
    wrong = (~torch.isfinite(outputs.amax(1))).sum().item()
    if wrong:
        raise ModelError(
            f"the model returns NaN or infinite logits for {wrong} of {len(images)} images"
        )
    for what, given in classes.items():
        if len(given) and bool(((given < 0) | (given >= outputs.shape[1])).any()):
            raise InputError(
                f"{what} run from {int(given.min())} to {int(given.max())}, and the model has "
                f"classes 0 to {outputs.shape[1] - 1}"
            )
    return outputs


def require_gradient(model: nn.Module, images: Tensor) -> None:
    """Raise `ModelError` if no gradient passes from the model's outputs to its images."""
    leaf = images.detach().requires_grad_()
    with torch.enable_grad():
        outputs = model(leaf.clone())
        reached = outputs.requires_grad and any(
            gradient is not None
            for gradient in torch.autograd.grad(outputs.sum(), leaf, allow_unused=True)
        )
    if not reached:
        raise ModelError(
            "no gradient passes from the model's outputs to its images, and attacks follow one: "
            "look for torch.no_grad, detach, argmax or numpy in its forward"
        )
