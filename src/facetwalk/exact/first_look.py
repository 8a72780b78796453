"""A first look at what is to be proven: do network, space and objective fit?"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from facetwalk.exact.copying import device_of, in_float64
from facetwalk.exact.goals import Goals
from facetwalk.exact.graph import Graph
from facetwalk.models import count_of
from facetwalk.objectives import as_objective
from facetwalk.problem import Problem
from facetwalk.solvers import Task
from facetwalk.spaces import Space
from facetwalk.streams import Streams
from facetwalk.trial import check_scores, first_outputs
from facetwalk.types import InputError, ModelError


def first_look(network: nn.Module, space: Space, objective: Any) -> tuple[Goals, Graph]:
    """A problem's goals and their graph; what does not fit is said in words.

    >>> from facetwalk.objectives import Margin
    >>> from facetwalk.spaces import Box
    >>> space, margin = Box(-1, 1, shape=(3,)), Margin(torch.tensor([1]))
    >>> first_look(nn.Linear(3, 4).eval(), space, margin)[1].outputs
    3
    """
    problem = Problem(network, as_objective(objective), space)
    twin = in_float64(problem.model)
    goals, device = Goals(twin, objective), device_of(twin)
    if count_of(twin) != 1:
        raise InputError(
            f"a proof is about one problem, and the network describes {count_of(twin)}: "
            "pick one with network.select"
        )
    if not all(bool(weight.isfinite().all()) for weight in twin.parameters()):
        raise ModelError("the network has weights that are infinite or no numbers")
    two = torch.arange(2, device=device)
    task = Task(
        model=twin,
        objective=as_objective(objective).to(device, torch.float64),
        space=space.to(device, torch.float64),
        random=Streams.from_seeds(two, two),
    )
    x = task.space.sample(task.random)
    with torch.no_grad():
        first_outputs(task, x[:1])
        check_scores(task, first_outputs(task, x), task.objective, len(x))
        graph = Graph.of_copy(goals, space.shape)
        graph.check_at(x, goals.plain(x.clone()))
    return goals, graph
