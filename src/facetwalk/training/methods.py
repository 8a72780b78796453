"""What a network is trained on: images as they are, or perturbed in one of three ways."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Generator, Tensor, nn

from facetwalk.training.loss_gradients import RecordedGradient
from facetwalk.training.perturbing import perturb, perturb_once
from facetwalk.training.recipe import MethodName, Recipe


class Natural:
    """Images as they are; the base of the other methods."""

    noise: Tensor | None = None
    """What is kept from batch to batch, `(batch_size, C, H, W)`."""

    def __init__(self, recipe: Recipe, generator: Generator) -> None:
        self.recipe, self.generator = recipe, generator
        self.gradient = RecordedGradient()

    def prepare(self, net: nn.Module, images: Tensor, labels: Tensor, radius: float) -> Tensor:
        """The images `(B, C, H, W)` that the next step is taken with."""
        return images

    def learn(self, radius: float) -> None:
        """Called when the loss of what `prepare` returned has been sent backwards."""


class Fgsm(Natural):
    """One step from a random start (Wong et al., 2020), in eval mode."""

    def prepare(self, net: nn.Module, images: Tensor, labels: Tensor, radius: float) -> Tensor:
        return perturb_once(net.eval(), images, labels, radius, self.generator, self.gradient)


class Pgd(Natural):
    """Many steps from a random start (Madry et al., 2018), in eval mode."""

    def prepare(self, net: nn.Module, images: Tensor, labels: Tensor, radius: float) -> Tensor:
        steps = self.recipe.attack_steps
        return perturb(net.eval(), images, labels, radius, steps, self.generator, self.gradient)


class Free(Natural):
    """Steps of weights and perturbation from the same gradient (Shafahi et al., 2019).

    Each batch is seen several times in a row. The perturbation belongs to places in the batch, not
    to images, and goes on from one batch to the next.
    """

    def prepare(self, net: nn.Module, images: Tensor, labels: Tensor, radius: float) -> Tensor:
        if self.noise is None:
            self.noise = images.new_zeros(self.recipe.batch_size, *images.shape[1:])
        self._part = self.noise[: len(images)].detach().requires_grad_()
        return (images + self._part).clamp(0, 1)

    def learn(self, radius: float) -> None:
        assert self._part.grad is not None
        with torch.no_grad():
            self._part += radius * self._part.grad.sign()
            self._part.clamp_(-radius, radius)


METHODS: dict[MethodName, Callable[[Recipe, Generator], Natural]] = {
    "natural": Natural,
    "fgsm": Fgsm,
    "pgd": Pgd,
    "free": Free,
}
