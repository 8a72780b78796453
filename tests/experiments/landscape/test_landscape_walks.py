"""Walks side by side are walks alone; all methods spend as much."""

import pytest
import torch

from facetwalk.experiments.landscape.networks import LARGE, networks
from facetwalk.experiments.landscape.traps import DRAWN
from facetwalk.experiments.landscape.walks import (
    GRADIENTS,
    METHODS,
    path,
    run_all,
    start_points,
)
from facetwalk.solvers import Auto


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_method_has_the_same_gradients(method):
    solver = method.solver.plan() if isinstance(method.solver, Auto) else method.solver
    assert solver.evaluations * method.starts == GRADIENTS


@pytest.mark.parametrize("method", DRAWN, ids=lambda method: method.name)
def test_a_path_is_the_walk_of_the_batch(method):
    nets, points = networks(LARGE, 2), start_points(6)
    number = 4
    result = run_all(nets, points, method)
    walked = torch.tensor(path(nets[1], points[number], method, number), dtype=torch.float64)
    assert torch.equal(walked[0], points[number])
    assert walked.abs().max() <= 1
    with torch.no_grad():
        best = nets[1](walked).max().item()
    # The end of a walk is evaluated too, and is no point from which a step begins.
    assert best <= result.value[number].item() + 1e-9
    assert best == pytest.approx(result.value[number].item(), abs=0.05)
