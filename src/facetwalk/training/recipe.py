"""How one network is trained."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any, Literal, get_args

from facetwalk.robustness.inputs import as_seed
from facetwalk.types import InputError, whole_number
from facetwalk.zoo import ARCHITECTURES

DataName = Literal["mnist", "cifar10"]
MethodName = Literal["natural", "fgsm", "pgd", "free"]
OptimizerName = Literal["adam", "sgd"]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One network, and how it is trained.

    >>> Recipe(name="small", data="mnist", architecture="mnist-cnn", radius=0.1, epochs=3).passes
    3
    """

    name: str
    """That of its files."""
    data: DataName
    """What it is trained and tested on; photographs are also shifted and mirrored."""
    architecture: str
    """One of `zoo.ARCHITECTURES`."""
    method: MethodName = "pgd"
    """Which images it sees: as they are, or perturbed by one step, many, or as in `Free`."""
    radius: float
    """L-infinity radius of the perturbations that it is trained against and measured with."""
    attack_steps: int = 10
    """Gradient steps of a perturbation, with `pgd`."""
    replays: int = 8
    """How often each batch is seen in a row, with `free`."""
    epochs: int
    """How often each image is seen."""
    batch_size: int = 256
    optimizer: OptimizerName = "adam"
    learning_rate: float = 1e-3
    """The highest one: it rises to this and falls to zero."""
    seed: int = 0

    def __post_init__(self) -> None:
        choices = {
            "data": get_args(DataName),
            "architecture": tuple(ARCHITECTURES),
            "method": get_args(MethodName),
            "optimizer": get_args(OptimizerName),
        }
        for field, known in choices.items():
            if getattr(self, field) not in known:
                raise InputError(
                    f"{field} must be one of {', '.join(known)}, not {getattr(self, field)!r}"
                )
        name, radius, rate = self.name, self.radius, self.learning_rate
        if not isinstance(name, str) or not name or Path(name).name != name:
            raise InputError(f"the name must be a plain file name; it is {name!r}")
        if not isinstance(radius, Real) or not 0 <= radius <= 1:
            raise InputError(f"the radius must be between 0 and 1; it is {radius!r}")
        if not isinstance(rate, Real) or not 0 < rate < float("inf"):
            raise InputError(f"the learning rate must be positive; it is {rate!r}")
        whole = ("attack_steps", "replays", "epochs", "batch_size")
        plain: dict[str, Any] = {f: whole_number(f, getattr(self, f), at_least=1) for f in whole}
        plain |= {"radius": float(radius), "learning_rate": float(rate), "seed": as_seed(self.seed)}
        for field, value in plain.items():
            object.__setattr__(self, field, value)

    @property
    def repeats(self) -> int:
        """Steps that are taken with each batch before the next."""
        return self.replays if self.method == "free" else 1

    @property
    def passes(self) -> int:
        """How often training goes through the data: each of these is one checkpoint."""
        return -(-self.epochs // self.repeats)
