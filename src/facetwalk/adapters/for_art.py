"""The attack as the Adversarial Robustness Toolbox has them; importing this needs it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from facetwalk.adapters.logits import Logits
from facetwalk.adapters.modes import modes_kept
from facetwalk.robustness import attack
from facetwalk.robustness.surroundings import Surroundings
from facetwalk.solvers import Auto, Method
from facetwalk.spaces import Bounds
from facetwalk.types import InputError, MissingExtraError, ModelError, whole_number

try:
    from art.attacks import EvasionAttack
    from art.config import ART_NUMPY_DTYPE
    from art.estimators.classification import PyTorchClassifier
except ImportError as error:
    raise MissingExtraError("the attack for ART", "art") from error


class ArtAttack(EvasionAttack):
    """`robustness.attack` as an `art.attacks.EvasionAttack`.

    The estimator's preprocessing is part of the model, its `clip_values` are bounds, and `eps` is
    in the units of the images. As with all of ART the model is put into eval mode; afterwards each
    of its parts is in the mode in which it was.

    Args:
        estimator: from images to logits; its preprocessing must be ART's for PyTorch.
        eps: how far a point may be from its image.
        norm: in which `eps` is measured: "inf", "2" or "1", or numbers as ART has them.
        budget: gradient evaluations of each image.
        solver: another method than the default, with a budget of its own.
        seed: image b of a call uses `seed + b`; the same call gives the same points again.
        targeted: whether `y` are the classes that the model should see.

    >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 3))
    >>> loss = torch.nn.CrossEntropyLoss()
    >>> classifier = PyTorchClassifier(net, loss, (1, 2, 2), nb_classes=3, clip_values=(0, 1))
    >>> x = np.random.rand(5, 1, 2, 2).astype(np.float32)
    >>> ArtAttack(classifier, eps=0.5, budget=100).generate(x).shape
    (5, 1, 2, 2)
    """

    attack_params = [  # noqa: RUF012 (as ART declares it)
        *EvasionAttack.attack_params,
        "eps",
        "norm",
        "budget",
        "solver",
        "seed",
        "targeted",
    ]
    _estimator_requirements = (PyTorchClassifier,)

    def __init__(
        self,
        estimator: PyTorchClassifier,
        eps: float = 0.3,
        norm: str | float = "inf",
        budget: int = 1000,
        solver: Method | Auto | None = None,
        seed: int | Tensor = 0,
        targeted: bool = False,
    ) -> None:
        super().__init__(estimator=estimator)
        self.eps = eps
        self.norm = norm
        self.budget = budget
        self.solver = solver
        self.seed = seed
        self.targeted = targeted
        self._check_params()

    def generate(self, x: np.ndarray, y: np.ndarray | None = None, **kwargs: Any) -> np.ndarray:
        """The points that were found.

        Args:
            x: images `(N, *shape)`.
            y: classes, indices `(N,)` or one-hot `(N, classes)`: the true ones, or the targets of
                a targeted attack. Without them, the classes that the model sees.
        """
        for name, value in kwargs.items():
            if value is not None:
                raise InputError(f"this attack has no option {name!r}")
        if not self.estimator.all_framework_preprocessing:
            raise ModelError(
                "the estimator's preprocessing works on numpy arrays and passes no gradient: use "
                "the PyTorch versions of these defences"
            )
        if y is None and self.targeted:
            raise InputError("a targeted attack needs its targets: pass y")
        images = np.ascontiguousarray(x, dtype=ART_NUMPY_DTYPE)
        if not len(images):
            return images.copy()
        with modes_kept(self.estimator.model):
            classes = self._classes(images, y)
            found = attack(
                Logits(self._logits, self.estimator.model),
                torch.tensor(images),
                classes,
                self.eps,
                targets=classes if self.targeted else None,
                norm=self.norm,
                bounds=self._bounds(),
                budget=self.budget,
                solver=self.solver,
                seed=self.seed,
            )
        return found.adversarial.cpu().numpy()

    def _logits(self, images: Tensor) -> Tensor:
        return self.estimator._predict_framework(images)[0]

    def _classes(self, images: np.ndarray, y: np.ndarray | None) -> Tensor:
        """Class indices `(N,)`."""
        given = np.asarray(self.estimator.predict(images) if y is None else y)
        if given.ndim == 2 and given.shape[1] > 1:
            return torch.from_numpy(given.argmax(1))
        if given.dtype.kind not in "uif" or not np.isfinite(given).all() or (given % 1).any():
            raise InputError("y must be class indices, an integer for each image, or one-hot rows")
        return torch.from_numpy(given.astype(np.int64)).flatten()

    def _bounds(self) -> Bounds | None:
        if self.estimator.clip_values is None:
            return None
        low, high = (torch.tensor(b).to(self.estimator.device) for b in self.estimator.clip_values)
        return low, high

    def _check_params(self) -> None:
        Surroundings.of(self.eps, self.norm, None)
        whole_number("budget", self.budget, at_least=1)
        if not isinstance(self.targeted, bool):
            raise InputError(f"targeted must be True or False; it is {self.targeted!r}")
