"""ADR-GD on dense critics takes the steps that `AdrGd` takes on any network."""

from dataclasses import replace

import pytest
import torch
from torch import nn

import facetwalk as fw
from facetwalk.control.critics import ActionValue
from facetwalk.control.dense_adr_gd import run_dense, serves
from facetwalk.solvers import AdrGd

PAPER = AdrGd.for_experiment("td3")


def critic(widths, states, actions, dtype=torch.float64):
    torch.manual_seed(3)
    parts = []
    for before, after in zip([5 + actions, *widths], [*widths, 1], strict=True):
        parts += [nn.Linear(before, after), nn.ReLU()]
    return ActionValue([nn.Sequential(*parts[:-1])], torch.randn(states, 5)).to(dtype).eval()


@pytest.mark.parametrize("states", [1, 4])
@pytest.mark.parametrize("widths", [[24], [24, 16], [16, 12, 8]])
@pytest.mark.parametrize(("actions", "steps"), [(3, 60), (20, 40)])
def test_steps_are_those_of_the_solver(widths, states, actions, steps):
    model = critic(widths, states, actions)
    solver = replace(PAPER, steps=steps, gate_tolerance=0.05)  # so large that noise is added
    start = torch.rand(states, actions, dtype=torch.float64) * 2 - 1
    low, high = (start - 0.7).clamp(-1, 1), (start + 0.7).clamp(-1, 1)
    assert serves(model, solver)
    x = run_dense(model, start, solver, low, high, seed=9)
    problem = fw.Problem(model, fw.objectives.Output(0), fw.Box(low, high, shape=(actions,)))
    result = fw.maximize(problem, solver=solver, x0=start, seed=9)
    torch.testing.assert_close(x, result.x, atol=1e-6, rtol=0)
    assert (result.value > model(start).squeeze(1)).all()


def test_noise_takes_part():
    model, start = critic([24], 1, 3), torch.zeros(1, 3, dtype=torch.float64)
    box = -torch.ones_like(start), torch.ones_like(start)
    found = [
        run_dense(model, start, replace(PAPER, gate_tolerance=0.05, noise_scale=r), *box, seed=9)
        for r in (0.0, 0.5)
    ]
    assert not torch.equal(*found)


def test_what_is_no_plain_algorithm_on_a_dense_critic_is_left_to_the_solver():
    dense = critic([8], 1, 2)
    assert serves(dense, PAPER)
    assert not serves(dense, AdrGd.for_experiment("td3", preset="released"))
    assert not serves(dense, replace(PAPER, perturb=False))
    twins = ActionValue([dense.networks[0], dense.networks[0]], dense.features)
    assert not serves(twins, PAPER)
    smooth = nn.Sequential(nn.Linear(7, 4), nn.Tanh(), nn.Linear(4, 1))
    assert not serves(ActionValue([smooth], dense.features), PAPER)
    unbiased = nn.Sequential(nn.Linear(7, 4, bias=False), nn.ReLU(), nn.Linear(4, 1))
    assert not serves(ActionValue([unbiased], dense.features), PAPER)
