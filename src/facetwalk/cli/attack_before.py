"""What a classifier says of images before they are attacked."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from facetwalk import InputError
from facetwalk.robustness.inputs import as_classes, as_images, logits_of
from facetwalk.spaces import Bounds
from facetwalk.streams import Streams
from facetwalk.zoo import Loaded


@dataclass(frozen=True)
class Before:
    """Every tensor has a row for each image, `(N,)`."""

    labels: Tensor
    targets: Tensor | None
    """The classes that the attack is to reach; None where any wrong one will do."""
    predicted: Tensor

    @property
    def right(self) -> Tensor:
        """Where the model is right, bool."""
        return self.predicted == self.labels

    @property
    def there(self) -> Tensor:
        """Where it sees the target already, bool."""
        if self.targets is None:
            return torch.zeros_like(self.right)
        return self.predicted == self.targets


def seen_before(
    loaded: Loaded, clean: Tensor, labels: Tensor, bounds: Bounds, asked: str | None, seed: int
) -> Before:
    """What the model says of images `(N, *shape)`; `asked` is what `--targets` says.

    >>> from facetwalk.zoo import load_model
    >>> black, zero = torch.zeros(1, 1, 8, 8), torch.tensor([0])
    >>> seen_before(load_model("digits"), black, zero, (0, 1), "7", seed=0).targets.tolist()
    [7]
    """
    images = as_images(clean, loaded.model, bounds)
    true = as_classes(labels, len(images), images.device, "labels")
    logits = logits_of(loaded.model, images, {"labels": true})
    true = true.cpu()
    return Before(true, _targets(asked, logits.shape[1], true, seed), logits.argmax(1).cpu())


def _targets(asked: str | None, classes: int, labels: Tensor, seed: int) -> Tensor | None:
    if asked is None:
        return None
    if asked == "random":
        numbers = seed + torch.arange(len(labels))
        drawn = Streams.from_seeds(numbers, torch.zeros_like(numbers)).uniform(())
        return (labels + 1 + (drawn * (classes - 1)).long()) % classes
    if not asked.isdecimal():
        raise InputError(f"--targets must be a class or random; it is {asked!r}")
    return torch.full_like(labels, int(asked))
