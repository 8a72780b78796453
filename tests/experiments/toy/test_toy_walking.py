"""Walks: the same steps as those of `maximize`, and where they lead."""

from dataclasses import replace

import pytest
import torch

import facetwalk as fw
from facetwalk.experiments.toy.network import PEAK, START, ToyNetwork, line
from facetwalk.experiments.toy.walking import METHODS, SHORT, SOFTENED, Walk, walk

BY_NAME = {(method.name, method.step): method.solver for method in METHODS}


@pytest.mark.parametrize("method", METHODS[1:], ids=lambda method: f"{method.name} {method.step}")
def test_a_walk_takes_the_steps_of_maximize(method):
    solver, seen = replace(method.solver, steps=30), []
    problem = fw.Problem(ToyNetwork(), fw.objectives.Output(0), line(3))
    start = torch.full((3, 1), START, dtype=torch.float64)
    result = fw.maximize(problem, solver=solver, x0=start, callback=lambda s: seen.append(s.x))
    walked = walk(solver, 3)
    assert torch.equal(walked.x[:-1], torch.stack(seen)[:, :, 0])
    torch.testing.assert_close(walked.best, result.value)


def test_gradient_ascent_stays_at_the_local_peak():
    walked = walk(BY_NAME["GD", SHORT], 1)
    assert (walked.x[-50:] - PEAK).abs().max() <= SHORT
    assert walked.best.item() <= 0.6


def test_softened_gates_lead_and_x_follows_to_the_maximum():
    walked = walk(BY_NAME[SOFTENED, SHORT], 2)
    for row, (led, there) in enumerate(
        zip(walked.first_lead(), walked.first_arrival(), strict=True)
    ):
        assert led is not None
        assert there is not None
        assert led < there
        u, v = walked.gates[led, row].tolist()
        assert u > 0.5 > v
        assert walked.x[led, row] < PEAK
        assert walked.x[there - 1, row] < 0.4 <= walked.x[there, row]
    assert walked.best.tolist() == pytest.approx([1.2, 1.2])


def test_the_first_step_at_which_gates_lead_is_found():
    x = torch.tensor([[-0.6, -0.6], [-0.5, -0.5], [-0.3, 0.5]])
    on, off = [0.7, 0.3], [0.3, 0.3]
    gates = torch.tensor([[off, off], [on, off], [on, on]])
    walked = Walk(x, torch.zeros_like(x), gates)
    assert walked.first_lead() == [1, None]
    assert walked.first_arrival() == [None, 2]
    assert walked.on_target.sum(0).tolist() == [2, 1]
    assert Walk(x, x, None).first_lead() == [None, None]
