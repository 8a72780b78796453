"""Looking at a model changes nothing of it."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from site_cases import AFFINE, Case, Model, residual, true_gates
from torch import Tensor, nn
from torch.nn.modules import module as torch_module

from facetwalk.sites import audit, discover, first_facet, pattern, tangents
from facetwalk.types import ModelError

CALLS = {
    "discover": lambda sites, x: discover(sites.model, x),
    "pre_activations": lambda sites, x: sites.pre_activations(x),
    "gated": lambda sites, x: sites.gated(x, true_gates(sites, x)),
    "pattern": lambda sites, x: pattern(sites.model, x),
    "first_facet": lambda sites, x: first_facet(sites.model, x, torch.ones_like(x)),
    "tangents": lambda sites, x: tangents(sites, x, true_gates(sites, x), torch.ones_like(x)),
    "audit": lambda sites, x: audit(sites, x[:1], x[1:2]),
}
every_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


@every_call
def test_a_model_that_works_in_place_does_not_change_the_callers_input(call):
    case = AFFINE["in place on its own input"]
    model, x = case.model(), case.inputs()
    call(discover(model, case.inputs()), x)
    assert torch.equal(x, case.inputs())
    model(x)
    assert not torch.equal(x, case.inputs())


def hooks_of(model: nn.Module) -> list[dict[str, Any]]:
    tables = [vars(part) for part in model.modules()] + [vars(torch_module)]
    return [
        {key: dict(value) for key, value in table.items() if "hooks" in key and value}
        for table in tables
    ]


class Failing(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        raise ZeroDivisionError("inside forward")


@pytest.mark.parametrize("fails", [False, True], ids=["works", "raises"])
@every_call
def test_the_model_and_the_random_state_stay_as_they_were(call, fails):
    case = Case(
        lambda: nn.Sequential(
            *[residual(), nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Sequential(nn.Identity())]
        ),
        (2, 4, 4),
        [],
    )
    model, x = case.model(), case.inputs(4)
    sites = discover(model, x)
    if fails:
        model[3][0] = Failing().eval()
    model[0].head.weight.requires_grad_(False)
    model[0].head.bias.grad = torch.ones(3, dtype=torch.float64)
    handle = model[1].register_forward_hook(lambda part, args, output: None)
    state, hooks, random = copy.deepcopy(model.state_dict()), hooks_of(model), torch.get_rng_state()
    flags = [part.training for part in model.modules()]
    error = pytest.raises((ZeroDivisionError, ModelError), match="inside forward")
    with error if fails else contextlib.nullcontext():
        call(sites, x)
    assert hooks_of(model) == hooks
    assert torch._C._len_torch_function_stack() == 0
    assert torch.equal(torch.get_rng_state(), random)
    assert [part.training for part in model.modules()] == flags
    assert model.state_dict().keys() == state.keys()
    assert all(torch.equal(model.state_dict()[name], tensor) for name, tensor in state.items())
    for name, parameter in model.named_parameters():
        assert parameter.requires_grad == (name != "0.head.weight")
        assert (parameter.grad is None) == (name != "0.head.bias")
    assert model[0].head.bias.grad.tolist() == [1, 1, 1]
    handle.remove()


def test_a_model_may_handle_an_error_of_its_own():
    def forward(self: Any, x: Tensor) -> Tensor:
        with contextlib.suppress(ZeroDivisionError):
            self.outer(x)
        return F.relu(self.first(x))

    outer = nn.Sequential(nn.ReLU(), nn.Sequential(Failing()))
    case = Case(lambda: Model(forward, outer=outer, first=nn.Linear(4, 6)), (4,), [])
    names = [site.name for site in discover(case.model(), case.inputs())]
    assert names == ["outer.0#0", "model#0"]


def test_a_model_in_train_mode_stays_as_it_was():
    model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Dropout(0.5))
    state, random = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    with contextlib.suppress(ModelError):
        discover(model, torch.randn(3, 4, generator=torch.Generator()))
    assert all(torch.equal(model.state_dict()[name], tensor) for name, tensor in state.items())
    assert torch.equal(torch.get_rng_state(), random)
    assert model.training
