"""Models that are compiled, copied or unusual, and how they are called."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from site_cases import AFFINE, Case, Model
from torch import Tensor, nn

from facetwalk.sites import discover, first_facet, pattern


def test_a_compiled_model_is_unwrapped():
    case = AFFINE["nn.ReLU"]
    model = case.model()
    compiled = torch.compile(model, backend="eager")
    sites = discover(compiled, case.inputs())
    assert sites.model is model
    assert [site.name for site in sites] == ["act#0"]
    other = case.model()
    assert sites.on(torch.compile(other, backend="eager")).model is other


def test_sites_serve_another_model_of_the_same_architecture():
    case = AFFINE["nn.ReLU"]
    x, other = case.inputs(), case.model()
    other.first.weight.data.neg_()
    sites = discover(case.model(), x).on(other)
    torch.testing.assert_close(sites.pre_activations(x)[0], other(x))
    torch.testing.assert_close(sites.pre_activations(x)[1][0], other.first(x))


def test_a_row_may_hold_one_neuron():
    case = Case(
        lambda: Model(lambda self, x: F.relu(self.first(x).squeeze(1)), first=nn.Linear(4, 1)),
        (4,),
        [],
    )
    model, x = case.model(), case.inputs(5)
    sites = discover(model, x)
    _, seen = sites.pre_activations(x)
    joined = sites.join(seen)
    assert sites.neurons == 1
    torch.testing.assert_close(joined, model.first(x))
    assert torch.equal(sites.split(joined)[0], seen[0])
    assert pattern(model, x).count().tolist() == (model.first(x)[:, 0] > 0).long().tolist()
    slope = -model.first.weight.expand(5, 4)
    expected = model.first(x)[:, 0] / model.first.weight.square().sum()
    expected = torch.where(expected > 0, expected, torch.inf)
    torch.testing.assert_close(first_facet(model, x, slope), expected)


def test_a_pre_activation_that_the_model_changes_later_is_seen_as_it_was():
    def forward(self: Any, x: Tensor) -> Tensor:
        z = self.first(x)
        y = self.second(F.relu(z))
        z += y
        return z

    case = Case(lambda: Model(forward, first=nn.Linear(4, 6), second=nn.Linear(6, 6)), (4,), [])
    model, x = case.model(), case.inputs()
    _, (seen,) = discover(model, x).pre_activations(x)
    torch.testing.assert_close(seen, model.first(x))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_the_grad_mode_of_the_caller_does_not_matter(mode):
    case = AFFINE["nn.ReLU"]
    model, x = case.model(), case.inputs()
    with mode():
        assert [site.name for site in discover(model, x)] == ["act#0"]


@pytest.mark.parametrize("requires_grad", [False, True])
def test_frozen_weights_and_inputs_with_gradients_do_not_matter(requires_grad):
    case = AFFINE["one module called three times"]
    model = case.model().requires_grad_(requires_grad)
    assert len(discover(model, case.inputs().requires_grad_(not requires_grad))) == 3
