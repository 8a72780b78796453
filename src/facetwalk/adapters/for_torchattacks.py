"""The attack as torchattacks has them; importing this needs torchattacks."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from facetwalk.adapters.logits import Logits
from facetwalk.adapters.modes import modes_kept
from facetwalk.robustness import attack
from facetwalk.robustness.inputs import as_classes, check_images, logits_of
from facetwalk.solvers import Auto, Method
from facetwalk.types import InputError, MissingExtraError

try:
    from torchattacks.attack import Attack
except ImportError as error:
    raise MissingExtraError("the attack for torchattacks", "torchattacks") from error

_ROUNDINGS = 16
"""Normalising pixels and going back rounds a few times."""


class TorchAttack(Attack):
    """`robustness.attack` as a `torchattacks.Attack`.

    Images are `(N, *shape)` with pixels in [0, 1], or normalised after `set_normalization_used`;
    `eps` is in pixels in both cases. As with all of torchattacks the model is put into eval mode
    unless `set_model_training_mode` says otherwise; afterwards each of its parts is in the mode in
    which it was.

    Args:
        model: from images to logits `(N, classes)`.
        eps: how far a point may be from its image.
        norm: in which `eps` is measured: "inf", "2" or "1".
        budget: gradient evaluations of each image.
        solver: another method than the default, with a budget of its own.
        seed: image b of a call uses `seed + b`; the same call gives the same points again.

    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 3))
    >>> atk = TorchAttack(net, eps=0.5, budget=100)
    >>> adv = atk(torch.rand(5, 1, 2, 2), torch.zeros(5, dtype=torch.long))
    >>> adv.shape, net.training
    (torch.Size([5, 1, 2, 2]), True)
    """

    def __init__(
        self,
        model: nn.Module,
        eps: float = 8 / 255,
        norm: str | float = "inf",
        budget: int = 1000,
        solver: Method | Auto | None = None,
        seed: int | Tensor = 0,
    ) -> None:
        super().__init__("TorchAttack", model)
        self.eps = eps
        self.norm = norm
        self.budget = budget
        self.solver = solver
        self.seed = seed
        self.supported_mode = ["default", "targeted"]

    def forward(self, images: Tensor, labels: Tensor | None = None) -> Tensor:
        """The points that were found, `(N, *shape)`."""
        check_images(images)
        images = _pixels(images.detach()).to(self.device)
        logits = Logits(self.get_logits, self.model)
        goals = None
        if labels is not None:
            goals = as_classes(labels, len(images), images.device, "labels")
        if self.targeted:
            if goals is not None:
                logits_of(logits, images[:1], {"labels": goals})
            goals = self.get_target_label(images, goals)
        if goals is None:
            raise InputError("the attack needs labels, a class index for each image")
        return attack(
            logits,
            images,
            goals,
            self.eps,
            targets=goals if self.targeted else None,
            norm=self.norm,
            budget=self.budget,
            solver=self.solver,
            seed=self.seed,
        ).adversarial

    def __call__(
        self, inputs: Tensor, labels: Tensor | None = None, *args: Any, **kwargs: Any
    ) -> Tensor:
        applied = self._normalization_applied
        try:
            with modes_kept(self.model):
                return super().__call__(inputs, labels, *args, **kwargs)
        finally:
            self._set_normalization_applied(applied)


def _pixels(images: Tensor) -> Tensor:
    """Images in [0, 1], also where rounding has put them just outside."""
    inside = images.clamp(0, 1)
    slack = _ROUNDINGS * torch.finfo(images.dtype).eps
    if bool(((images - inside).abs() > slack).any()):
        raise InputError(
            f"the images run from {images.min():.3g} to {images.max():.3g} and must be pixels in "
            "[0, 1]: if they are normalised, call set_normalization_used(mean, std) first"
        )
    return inside
