"""The methods: frozen dataclasses whose fields are their hyperparameters."""

from facetwalk.solvers.activation_descent import ActivationDescent
from facetwalk.solvers.adaptive import Adagrad, Adam, RmsProp
from facetwalk.solvers.adr_gd import AdrGd
from facetwalk.solvers.apgd import Apgd
from facetwalk.solvers.auto import Auto
from facetwalk.solvers.base import Method, Passes, Round, Solver, Task
from facetwalk.solvers.gd import Gd
from facetwalk.solvers.perturbed import PerturbedGd
from facetwalk.solvers.recombination import Recombination
from facetwalk.solvers.scheduled import ScheduledSolver
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
    "activation-descent": ActivationDescent,
}
"""Every solver under the name that the command line uses."""

__all__ = [
    "BY_NAME",
    "ActivationDescent",
    "Adagrad",
    "Adam",
    "AdrGd",
    "Apgd",
    "Auto",
    "Fgsm",
    "Gd",
    "Method",
    "Passes",
    "PerturbedGd",
    "Recombination",
    "RmsProp",
    "Round",
    "ScheduledSolver",
    "Sign",
    "Solver",
    "Task",
]
