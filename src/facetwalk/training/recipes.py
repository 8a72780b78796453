"""The recipes that come with the package."""

from __future__ import annotations

from dataclasses import replace

from facetwalk.training.recipe import Recipe
from facetwalk.types import InputError

_MNIST = Recipe(
    name="mnist-pgd", data="mnist", architecture="mnist-cnn", radius=0.2, attack_steps=10, epochs=24
)
_CIFAR = Recipe(
    name="cifar-cnn-8",
    data="cifar10",
    architecture="cifar-cnn",
    radius=8 / 255,
    attack_steps=7,
    epochs=30,
    seed=3,
)
_VGG = replace(
    _CIFAR,
    name="cifar-vgg19-pgd",
    architecture="cifar-vgg19",
    optimizer="sgd",
    learning_rate=0.05,
    seed=0,
)

RECIPES = {
    recipe.name: recipe
    for recipe in (
        replace(_MNIST, name="mnist-cnn-0.3", radius=0.3),
        replace(_MNIST, name="mnist-cnn-0.2", seed=1),
        replace(
            _MNIST,
            name="mnist-strided-0.3",
            architecture="mnist-strided",
            radius=0.3,
            learning_rate=2e-3,
            seed=2,
        ),
        _CIFAR,
        replace(
            _CIFAR,
            name="cifar-resnet-8",
            architecture="cifar-resnet",
            learning_rate=3e-3,
            seed=4,
        ),
        replace(_MNIST, name="mnist-natural", method="natural", epochs=12),
        replace(_MNIST, name="mnist-fgsm", method="fgsm"),
        _MNIST,
        replace(_VGG, name="cifar-vgg19-natural", method="natural"),
        replace(_VGG, name="cifar-vgg19-fgsm", method="fgsm"),
        _VGG,
        replace(_VGG, name="cifar-vgg19-free", method="free", epochs=96),
        replace(
            _VGG,
            name="cifar-vgg19-plain-natural",
            architecture="cifar-vgg19-plain",
            method="natural",
            learning_rate=0.02,
        ),
        replace(_VGG, name="cifar-resnet18-pgd", architecture="cifar-resnet18", learning_rate=0.1),
    )
}
"""By name. The first eight made the networks that the package ships."""


def recipe_of(name: str) -> Recipe:
    """The recipe of that name.

    >>> recipe_of("mnist-fgsm").radius
    0.2
    >>> recipe_of("mnist-fgms")
    Traceback (most recent call last):
    facetwalk.types.InputError: 'mnist-fgms' names no recipe: see facetwalk train --list
    """
    if name not in RECIPES:
        raise InputError(f"{name!r} names no recipe: see facetwalk train --list")
    return RECIPES[name]
