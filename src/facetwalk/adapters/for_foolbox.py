"""The attack as Foolbox has them; importing this needs Foolbox."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook

from facetwalk.adapters.logits import Logits
from facetwalk.messages import reason
from facetwalk.robustness import attack
from facetwalk.robustness.inputs import as_classes, as_seeds, home_of
from facetwalk.robustness.surroundings import Surroundings
from facetwalk.solvers import Auto, Method
from facetwalk.types import InputError, MissingExtraError, ModelError, whole_number

try:
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        from eagerpy.astensor import astensor, astensor_
        from foolbox.attacks.base import FixedEpsilonAttack, get_criterion, raise_if_kwargs
        from foolbox.criteria import Misclassification, TargetedMisclassification
        from foolbox.distances import Distance, l1, l2, linf
        from foolbox.models.base import Model
except ImportError as error:
    raise MissingExtraError("the attack for Foolbox", "foolbox") from error

_DISTANCES = {"inf": linf, "2": l2, "1": l1}


class FoolboxAttack(FixedEpsilonAttack):
    """`robustness.attack` as a fixed-epsilon attack of Foolbox.

    Takes a `foolbox.PyTorchModel` with its bounds and preprocessing, inputs `(N, *shape)` within
    the bounds, and labels, `Misclassification` or `TargetedMisclassification`; `epsilons` are
    distances between inputs. As with all of Foolbox the model is used in the mode in which it is.

    Args:
        norm: in which epsilons are measured: "inf", "2" or "1".
        budget: gradient evaluations of each input, for each epsilon.
        solver: another method than the default, with a budget of its own.
        seed: input b of a call uses `seed + b`; the same call gives the same points again.

    >>> from foolbox import PyTorchModel
    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 3)).eval()
    >>> fmodel = PyTorchModel(net, bounds=(0, 1), device="cpu")
    >>> inputs, labels = torch.rand(5, 1, 2, 2), torch.zeros(5, dtype=torch.long)
    >>> _, clipped, success = FoolboxAttack(budget=100)(fmodel, inputs, labels, epsilons=[0.1, 0.5])
    >>> len(clipped), success.shape
    (2, torch.Size([2, 5]))
    """

    def __init__(
        self,
        *,
        norm: str | float = "inf",
        budget: int = 1000,
        solver: Method | Auto | None = None,
        seed: int | Tensor = 0,
    ) -> None:
        self.norm = Surroundings.of(0.0, norm, None).norm
        self.budget = budget
        self.solver = solver
        self.seed = seed
        self.times = 1

    @property
    def distance(self) -> Distance:
        return _DISTANCES[self.norm]

    def repeat(self, times: int) -> FoolboxAttack:
        """An attack that tries so many times, each time with other seeds and only where it has
        found nothing yet."""
        repeated = copy.copy(self)
        repeated.times = self.times * whole_number("times", times, at_least=1)
        return repeated

    def run(
        self, model: Model, inputs: Any, criterion: Any, *, epsilon: float, **kwargs: Any
    ) -> Any:
        """The points that were found, of the type of the inputs."""
        raise_if_kwargs(kwargs)
        given, restore_type = astensor_(inputs)
        if not isinstance(given.raw, Tensor):
            raise InputError(
                f"inputs must be torch tensors for a foolbox.PyTorchModel; they are "
                f"{type(given.raw).__name__}"
            )
        x = given.raw.detach()
        classes, targeted = _goals(criterion)
        goals = as_classes(classes, len(x), x.device, "targets" if targeted else "labels")
        logits = Logits(model, *_modules_behind(model, x[:1]))
        seeds = as_seeds(self.seed, len(x), x.device)
        points, left = x.clone(), torch.arange(len(x), device=x.device)
        for turn in range(self.times):
            found = attack(
                logits,
                x[left],
                goals[left],
                epsilon,
                targets=goals[left] if targeted else None,
                norm=self.norm,
                bounds=model.bounds,
                budget=self.budget,
                solver=self.solver,
                seed=seeds[left] + turn * len(x),
            )
            points[left] = found.adversarial
            left = left[~found.success]
        return restore_type(astensor(points))


def _goals(criterion: Any) -> tuple[Tensor, bool]:
    """Classes `(N,)`, and whether they are wanted rather than to be left."""
    wanted = get_criterion(criterion)
    if isinstance(wanted, Misclassification):
        return wanted.labels.raw, False
    if isinstance(wanted, TargetedMisclassification):
        return wanted.target_classes.raw, True
    raise InputError(
        "the criterion must be Misclassification or TargetedMisclassification; it is a "
        f"{type(wanted).__name__}"
    )


def _modules_behind(model: Model, x: Tensor) -> list[nn.Module]:
    """The torch modules that a model of Foolbox calls for one input, and keeps to itself."""
    seen: list[nn.Module] = []
    handle = register_module_forward_pre_hook(lambda module, _: seen.append(module))
    try:
        model(x)
    except Exception as error:
        _, dtype = home_of(nn.ModuleList(seen))
        if dtype not in (None, x.dtype):
            raise InputError(
                f"the inputs are {x.dtype} and the model's weights {dtype}: pass inputs of the "
                f"weights' type ({reason(error)})"
            ) from error
        raise ModelError(
            f"the model fails on one input alone, and must be fooled there: {reason(error)}"
        ) from error
    finally:
        handle.remove()
    return seen
