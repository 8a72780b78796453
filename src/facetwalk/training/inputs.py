"""What users pass to a training, checked before any work."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from facetwalk.robustness.inputs import as_classes, as_images, check_images, logits_of
from facetwalk.training.recipe import Recipe
from facetwalk.types import InputError


def require_recipe(recipe: object) -> None:
    """Raise `InputError` for what is no recipe, such as the name of one."""
    if not isinstance(recipe, Recipe):
        raise InputError(
            "the recipe must be a Recipe, as training.recipe_of('mnist-pgd') gives; it is a "
            f"{type(recipe).__name__}"
        )


def require_images(given: Any) -> None:
    """Raise `InputError` for what are no pixels in [0, 1], `(N, C, H, W)`, or none at all."""
    check_images(given)
    if not len(given):
        raise InputError("there are no images to train on")
    low, high = given.aminmax()
    if low < 0 or high > 1:
        raise InputError(
            f"the images run from {low:.3g} to {high:.3g} and must be pixels in [0, 1]: pass them "
            "as they were before they were normalised"
        )


def as_examples(
    net: nn.Module, images: Tensor, labels: Any, architecture: str
) -> tuple[Tensor, Tensor]:
    """Images `(N, C, H, W)` and labels `(N,)` as this fresh network takes them; it is put into eval
    mode.

    >>> import torch
    >>> from facetwalk.zoo import fresh_net
    >>> net, images = fresh_net("mnist-cnn"), torch.rand(2, 1, 28, 28, dtype=torch.float64)
    >>> x, y = as_examples(net, images, [3, 9], "mnist-cnn")
    >>> x.dtype, y
    (torch.float32, tensor([3, 9]))
    """
    shape = tuple(images.shape[1:])
    if shape != net.input_shape:
        raise InputError(
            f"{architecture} takes images of shape {net.input_shape}, and those to train on "
            f"have shape {shape}: choose another architecture"
        )
    x = as_images(images, net, None)
    y = as_classes(labels, len(x), x.device, "labels")
    logits_of(net.eval(), x[:1], {"labels": y})
    return x, y
