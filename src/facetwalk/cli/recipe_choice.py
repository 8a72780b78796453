"""The recipes that a user named, with the settings that they want otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from facetwalk import InputError
from facetwalk.training import Recipe, recipe_of


@dataclass(frozen=True)
class Changes:
    """Settings that take the place of a recipe's; None leaves them as they are."""

    epochs: int | None = None
    seed: int | None = None
    learning_rate: float | None = None
    method: str | None = None
    architecture: str | None = None
    radius: float | None = None

    @property
    def another_network(self) -> bool:
        """Whether the result is no longer what the recipe's name says."""
        return any(part is not None for part in (self.method, self.architecture, self.radius))


def make_recipes(names: Sequence[str], changes: Changes, name: str | None) -> list[Recipe]:
    """The recipes of these names, changed; `name` is what a changed one is called.

    >>> [recipe] = make_recipes(["mnist-pgd"], Changes(radius=0.1), "mnist-pgd-0.1")
    >>> recipe.name, recipe.radius
    ('mnist-pgd-0.1', 0.1)
    """
    if not names:
        raise InputError("name a recipe: facetwalk train --list shows them")
    chosen = [recipe_of(each) for each in dict.fromkeys(names)]
    if name is not None and (len(chosen) > 1 or not name or Path(name).name != name):
        raise InputError("--name must be a plain file name, for one recipe")
    if changes.another_network and (name is None or name in names):
        raise InputError(
            "a recipe with another method, architecture or radius makes another network: "
            "give it a name of its own with --name"
        )
    wanted: dict[str, Any] = {
        field: value for field, value in vars(changes).items() if value is not None
    }
    if name is not None:
        wanted["name"] = name
    return [replace(recipe, **wanted) for recipe in chosen]
