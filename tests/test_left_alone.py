"""Nothing of the model, the problem or the random state changes."""

import copy

import pytest
import torch
from small_classifier import QUICK, batch
from torch import nn

import facetwalk as fw
from facetwalk.solvers import AdrGd, Apgd


def snapshot(model):
    return {
        "state": {k: v.clone() for k, v in model.state_dict().items()},
        "flags": [
            (m.training, len(m._forward_hooks), len(m._forward_pre_hooks), len(m._backward_hooks))
            for m in model.modules()
        ],
        "grads": [(p.requires_grad, p.grad, p._version) for p in model.parameters()],
        "global hooks": (
            len(nn.modules.module._global_forward_hooks),
            len(nn.modules.module._global_forward_pre_hooks),
        ),
        "rng": torch.get_rng_state().clone(),
        "attributes": {k for m in model.modules() for k in vars(m)},
    }


def assert_same(before, after):
    assert all(torch.equal(before["state"][k], after["state"][k]) for k in before["state"])
    assert torch.equal(before["rng"], after["rng"])
    for part in ("flags", "grads", "global hooks", "attributes"):
        assert before[part] == after[part]


class Noisy(nn.Module):
    """Draws from the global generator and works in place, and fails after some calls."""

    def __init__(self, fails_after=10**9):
        super().__init__()
        self.conv = nn.Conv1d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm1d(4)
        self.out = nn.Linear(24, 3)
        self.act = nn.ReLU(inplace=True)
        object.__setattr__(self, "calls", [0, fails_after])

    def forward(self, x):
        self.calls[0] += 1
        if self.calls[0] > self.calls[1]:
            raise RuntimeError("out of luck")
        torch.rand(1)
        h = self.act(self.norm(self.conv(x[:, None])))
        return self.out(h.flatten(1))


@pytest.mark.parametrize("solver", [QUICK, Apgd(steps=8), AdrGd(steps=8)])
@pytest.mark.parametrize("fails_after", [10**9, 1, 3, 7])
def test_model_and_global_state_are_untouched_even_after_an_error(solver, fails_after):
    model = Noisy(fails_after).eval()
    model.conv.weight.requires_grad_(False)
    before = snapshot(model)
    problem = fw.Problem(
        model,
        fw.objectives.CrossEntropy(torch.tensor([0, 1, 2])),
        fw.LinfBall(torch.rand(3, 6, generator=torch.Generator().manual_seed(0)), eps=0.1),
    )
    before["rng"] = torch.get_rng_state().clone()
    if fails_after < 100:
        with pytest.raises((RuntimeError, fw.ModelError), match="out of luck"):
            fw.maximize(problem, solver=solver, starts=2)
    else:
        fw.maximize(problem, solver=solver, starts=2)
    assert_same(before, snapshot(model))


def test_nothing_of_the_problem_is_changed():
    problem = batch()
    kept = copy.deepcopy((problem.space.centers, problem.objective.labels))
    fw.maximize(problem, solver=AdrGd(steps=10), starts=2)
    assert torch.equal(problem.space.centers, kept[0])
    assert torch.equal(problem.objective.labels, kept[1])
