"""Makes an objective from text such as `output:0` or `margin:3`."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from facetwalk import InputError, objectives
from facetwalk.cli.files import READABLE, read_tensor
from facetwalk.objectives import Objective, TargetedDLR

_SIGNS = {"output": 1, "-output": -1}

_OF_CLASSES = {
    "margin": objectives.Margin,
    "cross-entropy": objectives.CrossEntropy,
    "dlr": objectives.DLR,
    "targeted-margin": objectives.TargetedMargin,
    "targeted-cross-entropy": objectives.TargetedCrossEntropy,
    "targeted-dlr": objectives.TargetedDLR,
}


def make_objective(text: str) -> Objective:
    """`[-]output:INDEX`, or the name of a class objective, a colon and its labels.

    Labels are integers, `3` for all problems or `3,5,8` for three, or a file that holds them;
    `targeted-dlr:LABELS:TARGETS` takes two of these.
    """
    name, _, rest = text.partition(":")
    if name in _SIGNS:
        return objectives.Output(_index(text, rest), _SIGNS[name])
    if name not in _OF_CLASSES:
        raise InputError(
            f"no objective is named {name!r}; there are {', '.join((*_SIGNS, *_OF_CLASSES))}"
        )
    wanted = "LABELS:TARGETS" if name == "targeted-dlr" else "LABELS"
    parts = rest.split(":") if name == "targeted-dlr" else [rest]
    if "" in parts or len(parts) != wanted.count(":") + 1:
        raise InputError(f"the objective {text!r} must have the form {name}:{wanted}")
    objective = _OF_CLASSES[name](*map(_labels, parts))
    if isinstance(objective, TargetedDLR) and bool((objective.labels == objective.targets).any()):
        raise InputError(
            f"the objective {text!r} has a target that is the label itself, where it is 0 "
            "everywhere: give other targets"
        )
    return objective


def _index(text: str, index: str) -> int:
    try:
        return int(index)
    except ValueError as error:
        raise InputError(
            f"the objective {text!r} needs the number of an output, as in output:0"
        ) from error


def _labels(text: str) -> Tensor:
    try:
        return torch.tensor([int(label) for label in text.split(",")])
    except ValueError as error:
        if Path(text).suffix not in READABLE:
            raise InputError(
                f"the labels {text!r} must be classes, as in 3 or 3,5,8, or a file "
                f"({', '.join(READABLE)}) that holds them"
            ) from error
        return read_tensor(Path(text))
