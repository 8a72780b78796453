import json
from dataclasses import FrozenInstanceError, asdict, replace

import numpy as np
import pytest
import torch
from small_problems import tiny

from facetwalk.training import RECIPES, recipe_of
from facetwalk.types import InputError
from facetwalk.zoo import SHIPPED_NETS

SHIPPED = {
    "mnist-cnn-0.3": ("mnist", 0.3, 10, 24, 256, 1e-3, 0),
    "mnist-cnn-0.2": ("mnist", 0.2, 10, 24, 256, 1e-3, 1),
    "mnist-strided-0.3": ("mnist", 0.3, 10, 24, 256, 2e-3, 2),
    "cifar-cnn-8": ("cifar10", 8 / 255, 7, 30, 256, 1e-3, 3),
    "cifar-resnet-8": ("cifar10", 8 / 255, 7, 30, 256, 3e-3, 4),
    "mnist-natural": ("mnist", 0.2, 10, 12, 256, 1e-3, 0),
    "mnist-fgsm": ("mnist", 0.2, 10, 24, 256, 1e-3, 0),
    "mnist-pgd": ("mnist", 0.2, 10, 24, 256, 1e-3, 0),
}
"""What the records beside the shipped weights say."""
NAMED_AFTER_METHODS = list(RECIPES)[5:]


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_networks_have_the_recipes_that_made_them(name):
    recipe = recipe_of(name)
    assert (
        recipe.data,
        recipe.radius,
        recipe.attack_steps,
        recipe.epochs,
        recipe.batch_size,
        recipe.learning_rate,
        recipe.seed,
    ) == SHIPPED[name]
    assert recipe.method == (name.rpartition("-")[2] if name in NAMED_AFTER_METHODS else "pgd")
    assert recipe.optimizer == "adam"
    assert recipe.architecture == SHIPPED_NETS[name]


def test_names_say_what_recipes_do():
    assert list(RECIPES)[:8] == list(SHIPPED_NETS) == list(SHIPPED)
    for name in NAMED_AFTER_METHODS:
        recipe = RECIPES[name]
        assert name == recipe.name
        assert name.endswith(f"-{recipe.method}")
        assert recipe.radius == {"mnist": 0.2, "cifar10": 8 / 255}[recipe.data]
        assert recipe.architecture.startswith(name.removesuffix(f"-{recipe.method}"))


def test_recipes_are_frozen():
    with pytest.raises(FrozenInstanceError):
        RECIPES["mnist-pgd"].seed = 7  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "trades"}, "method must be one of natural, fgsm, pgd, free, not 'trades'"),
        ({"architecture": "vgg"}, "architecture must be one of mnist-cnn, .*, not 'vgg'"),
        ({"radius": 8}, "the radius must be between 0 and 1; it is 8"),
        ({"radius": float("nan")}, "the radius must be between 0 and 1; it is nan"),
        ({"radius": "8/255"}, "the radius must be between 0 and 1; it is '8/255'"),
        ({"learning_rate": 0.0}, "the learning rate must be positive; it is 0"),
        ({"learning_rate": None}, "the learning rate must be positive; it is None"),
        ({"epochs": 0}, "epochs must be a whole number, at least 1; it is 0"),
        ({"epochs": 1.5}, "epochs must be a whole number, at least 1; it is 1.5"),
        ({"epochs": "3"}, "epochs must be a whole number, at least 1; it is '3'"),
        ({"batch_size": 2.5}, "batch_size must be a whole number, at least 1; it is 2.5"),
        ({"replays": None}, "replays must be a whole number, at least 1; it is None"),
        ({"seed": 0.5}, "seed must be a whole number; it is 0.5"),
        ({"seed": 2**64}, r"seed must lie within 2\^62 of 0; it is 18446744073709551616"),
        ({"name": "a/b"}, "the name must be a plain file name; it is 'a/b'"),
        ({"name": "a/"}, "the name must be a plain file name; it is 'a/'"),
        ({"name": ""}, "the name must be a plain file name; it is ''"),
        ({"name": None}, "the name must be a plain file name; it is None"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        replace(tiny(), **changes)


def test_numbers_of_other_libraries_are_numbers():
    given = tiny(epochs=np.int64(3), seed=torch.tensor(4), radius=np.float32(0.25))
    assert given == tiny(epochs=3, seed=4, radius=0.25)
    assert json.loads(json.dumps(asdict(given))) == asdict(given)


def test_an_unknown_name_is_refused():
    with pytest.raises(InputError, match="'vgg' names no recipe: see facetwalk train --list"):
        recipe_of("vgg")
