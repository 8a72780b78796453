"""Networks of three inputs, and whether a method looks at their ReLUs."""

from torch import nn

import facetwalk as fw
from facetwalk.solvers import ActivationDescent, Method
from facetwalk.zoo import random_network

BOX = fw.Box(-1, 1, shape=(3,))


def tiny(relus: bool = True) -> nn.Sequential:
    return random_network((3, 4, 1), 0) if relus else nn.Sequential(nn.Linear(3, 1)).eval()


def looks_at_relus(method: Method) -> bool:
    return any(isinstance(solver, ActivationDescent) for solver in method.rounds)
