"""The methods: frozen dataclasses whose fields are their hyperparameters."""

from facetwalk.solvers.adaptive import Adagrad, Adam, RmsProp
from facetwalk.solvers.adr_gd import AdrGd
from facetwalk.solvers.apgd import Apgd
from facetwalk.solvers.base import Passes, Solver, Task
from facetwalk.solvers.gd import Gd
from facetwalk.solvers.perturbed import PerturbedGd
from facetwalk.solvers.sign import Fgsm, Sign

BY_NAME: dict[str, type[Solver]] = {
    "gd": Gd,
    "adam": Adam,
    "adagrad": Adagrad,
    "rmsprop": RmsProp,
    "perturbed-gd": PerturbedGd,
    "fgsm": Fgsm,
    "sign": Sign,
    "apgd": Apgd,
    "adr-gd": AdrGd,
}
"""Every solver under the name that the command line uses."""

__all__ = [
    "BY_NAME",
    "Adagrad",
    "Adam",
    "AdrGd",
    "Apgd",
    "Fgsm",
    "Gd",
    "Passes",
    "PerturbedGd",
    "RmsProp",
    "Sign",
    "Solver",
    "Task",
]
