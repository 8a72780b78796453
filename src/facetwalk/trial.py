"""A first look at a problem: does everything fit, how much memory is a row, how fast is it."""

from __future__ import annotations

import time
import warnings
from typing import Any

import torch
from torch import Tensor

from facetwalk.gpu_memory import make_room
from facetwalk.messages import reason
from facetwalk.objectives import Custom, Objective
from facetwalk.replay import recorded
from facetwalk.solvers import Task
from facetwalk.types import InputError, ModelError, NotAffineWarning

_CPU_BYTES = 1 << 27
"""Memory for one batch on a CPU: with more, the system takes large tensors back after each step and
pages them in anew, which costs more than longer batches save."""
_FREE_SHARE = 0.4
"""Share of a GPU's free memory for one batch."""
_TENSORS_OF_STATE = 16
"""Tensors of the input's shape that a solver and the loop hold for a row, generously."""
_TIMED_PASSES, _TIMED_SECONDS = 10, 0.02
"""A pass is timed so often, or for so long, and at least twice: the fastest is what others on the
machine, and libraries that choose their kernels, did not hold up."""


def first_outputs(task: Task, x: Tensor) -> Any:
    """The model's outputs at rows `x`; what does not fit is said in words."""
    try:
        outputs = task.model(x.clone())
    except Exception as error:
        raise ModelError(
            f"the model fails on an input of shape {tuple(x.shape)} and type {x.dtype}: {error}"
        ) from error
    one_row_each = isinstance(outputs, Tensor) and outputs.ndim and len(outputs) == len(x)
    if not isinstance(task.objective, Custom) and not one_row_each:
        raise ModelError(
            f"the model must return a tensor with a row for each input; for {len(x)} inputs it "
            f"returned {_describe(outputs)}"
        )
    return outputs


def check_scores(task: Task, outputs: Any, whole: Objective, count: int) -> Tensor:
    """The objective of `count` rows with these outputs; what does not fit is said in words.

    `whole` is the objective of all problems.
    """
    if not isinstance(task.objective, Custom):
        whole.check(outputs)
    scores = task.objective(outputs)
    if not isinstance(scores, Tensor) or scores.shape != (count,):
        raise InputError(
            f"the objective must return one score for each input, shape ({count},); "
            f"it returned {_describe(scores)}"
        )
    if bool(torch.isnan(scores).any()):
        raise ModelError("the objective is NaN at the start: check the weights and the inputs")
    return scores


def _describe(value: object) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    return f"a {type(value).__name__}"


def rows_that_fit(task: Task, x: Tensor) -> int:
    """How many rows a batch may have, by what one pass over rows `x` keeps for going back."""
    kept = 0
    weights = (*task.model.parameters(), *task.model.buffers())
    shared = {tensor.untyped_storage().data_ptr() for tensor in weights}

    def note(tensor: Tensor) -> Tensor:
        nonlocal kept
        if tensor.untyped_storage().data_ptr() not in shared:
            kept += tensor.numel() * tensor.element_size()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        _check_gradient(task, x)
    of_row = 2 * kept // len(x) + _TENSORS_OF_STATE * x[0].numel() * x.element_size()
    memory = _CPU_BYTES
    if x.is_cuda:
        memory = int(_FREE_SHARE * make_room(x.device))
    return max(1, memory // max(of_row, 1))


def _check_gradient(task: Task, x: Tensor) -> None:
    """Go forward and back once, so that what has no gradient is said in words."""
    try:
        task.evaluate(x)
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        raise ModelError(
            "the objective has no gradient at the inputs: something between them and it is "
            f"detached, rounded, or was made in inference mode ({reason(error)})"
        ) from error


def has_relus(task: Task, x: Tensor) -> bool:
    """Whether ReLUs of the model can be found and seen."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotAffineWarning)
            task.sites(x)
    except ModelError:
        return False
    return True


def evaluations_per_second(task: Task, x: Tensor) -> float:
    """Gradient evaluations of rows like these, in one second."""

    def work() -> object:
        return task.evaluate(x)

    again = recorded(work, x.device) if x.is_cuda else work
    taken: list[float] = []
    while len(taken) < 2 or (len(taken) < _TIMED_PASSES and sum(taken) < _TIMED_SECONDS):
        began = time.perf_counter()
        again()
        if x.is_cuda:
            torch.cuda.synchronize(x.device)
        taken.append(time.perf_counter() - began)
    return len(x) / min(taken)
