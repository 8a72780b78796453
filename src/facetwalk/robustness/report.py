"""What an evaluation says of each image and of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from facetwalk.robustness.checks import Finding


@dataclass(frozen=True)
class Sample:
    """What is known of one image."""

    index: int
    """Its number in the data."""
    label: int
    predicted: int
    """What the model sees in the image itself."""
    clean_margin: float
    """How wrong it is there: the best wrong logit minus the true one."""
    broken_by: str | None
    """The attack that fooled the model, "clean" where none was needed, None where none did."""
    margin: float
    """The largest margin that was found."""
    adversarial_class: int
    """What the model sees at that point."""
    gradients: int
    """Gradient evaluations spent on the image."""
    depends_on_batch: bool
    """Whether an attack fooled the model in a batch and not alone; such an image is not broken."""


@dataclass(frozen=True)
class Report:
    """Accuracy, robust accuracy, and the samples behind them."""

    samples: Sequence[Sample]
    findings: Sequence[Finding]
    """What makes the figures doubtful."""
    seconds: float

    @property
    def accuracy(self) -> float:
        """Share of images that are classified correctly as they are; NaN without images."""
        return self._share([sample.broken_by != "clean" for sample in self.samples])

    @property
    def robust_accuracy(self) -> float:
        """Share of images on which every attack failed; NaN without images."""
        return self._share([sample.broken_by is None for sample in self.samples])

    @property
    def broken(self) -> dict[str, int]:
        """How many images each attack broke that those before it had not."""
        found: dict[str, int] = {}
        for sample in self.samples:
            if sample.broken_by is not None:
                found[sample.broken_by] = found.get(sample.broken_by, 0) + 1
        return found

    @property
    def mean_gradients(self) -> float:
        """Gradient evaluations an image, on average; NaN without images."""
        spent = [sample.gradients for sample in self.samples]
        return sum(spent) / len(spent) if spent else float("nan")

    def _share(self, which: list[bool]) -> float:
        return sum(which) / len(which) if which else float("nan")
