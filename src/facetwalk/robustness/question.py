"""What an evaluation is asked of all its images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from facetwalk.digests import digest
from facetwalk.robustness.inputs import MOST_ROWS, Images
from facetwalk.robustness.surroundings import Surroundings, bounds_of
from facetwalk.solvers import Auto, Method
from facetwalk.types import InputError, whole_number


@dataclass(frozen=True)
class Question:
    """Does this model withstand these attacks within these surroundings?"""

    model: nn.Module
    where: Surroundings
    attacks: Mapping[str, Method | Auto]
    """By name; each sees what those before it left."""
    seed: int
    """Image b uses `seed + b`."""

    def in_plain_values(self, images: Images, first: Tensor, labels: Tensor) -> dict[str, Any]:
        """The question of these images, to keep in a file: another one has other values.

        `first` are the images at the beginning as the model gets them; of others that are not in
        memory only the number is known.
        """
        return {
            "eps": self.where.eps,
            "norm": self.where.norm,
            "bounds": self._named_bounds(first),
            "attacks": [f"{name}: {attack!r}" for name, attack in self.attacks.items()],
            "seed": self.seed,
            "images": len(images),
            "first images": digest([first]),
            "later images": _named_rest(images, first),
            "labels": digest([labels]),
            "model": digest([*self.model.parameters(), *self.model.buffers()]),
        }

    def _named_bounds(self, first: Tensor) -> str | None:
        if self.where.bounds is None:
            return None
        low, high = bounds_of(self.where.bounds, first)
        return f"{low.amin():g} to {high.amax():g} ({digest([low, high])})"


def _named_rest(images: Images, first: Tensor) -> str:
    if len(images) <= len(first):
        return "none"
    if not isinstance(images, Tensor):
        return "unread"
    return digest(part.to(first.dtype) for part in images[len(first) :].split(MOST_ROWS))


def as_attacks(given: Mapping[str, Method | Auto] | None, budget: int) -> dict[str, Method | Auto]:
    """Attacks by name; without any, the default one with so many gradients.

    >>> as_attacks(None, budget=100)
    {'default': Auto(evaluations=100, seconds=None)}
    """
    if given is None:
        return {"default": Auto(evaluations=whole_number("budget", budget, at_least=1))}
    if not isinstance(given, Mapping) or not all(
        isinstance(name, str) and isinstance(attack, Method | Auto)
        for name, attack in given.items()
    ):
        raise InputError(
            "attacks must be solvers by name, as in {'sign': facetwalk.solvers.Sign(steps=100)}"
        )
    if not given or "clean" in given:
        raise InputError('attacks needs at least one, and none may be called "clean"')
    return dict(given)
