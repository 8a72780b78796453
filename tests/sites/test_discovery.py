"""Which ReLUs `discover` finds, and what the model does when they are replaced."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from site_cases import AFFINE, ALL, TOLERANCE, cases, true_gates, value_and_gradient

from facetwalk.sites import audit, discover


@cases(ALL)
def test_the_sites_are_found(case):
    sites = discover(case.model(), case.inputs())
    assert [(site.name, site.op, site.shape) for site in sites] == case.sites
    assert len(sites) == len(case.sites)
    assert sites.neurons == sum(int(np.prod(shape)) for _, _, shape in case.sites)


@cases(ALL)
def test_pre_activations_have_the_shapes_of_the_sites_and_do_not_mix_rows(case):
    model, x = case.model(), case.inputs(7)
    sites = discover(model, x)
    output, together = sites.pre_activations(x)
    torch.testing.assert_close(output, model(x.clone()), rtol=0, atol=1e-12)
    assert [z.shape for z in together] == [(7, *shape) for _, _, shape in case.sites]
    for row in (0, 3, 6):
        _, alone = sites.pre_activations(x[row : row + 1])
        for several, one in zip(together, alone, strict=True):
            torch.testing.assert_close(several[row], one[0], rtol=0, atol=1e-12)


@cases({name: case for name, case in AFFINE.items() if case.sites == [("model#0", "relu", (6,))]})
def test_an_in_place_relu_does_not_hide_the_pre_activation(case):
    model, x = case.model(), case.inputs()
    _, (seen,) = discover(model, x).pre_activations(x)
    torch.testing.assert_close(seen, model.first(x))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["double", "float"])
@cases(ALL)
def test_with_its_true_gates_the_network_is_the_model(case, dtype):
    model, x = case.model(dtype), case.inputs(dtype=dtype)
    sites = discover(model, x)
    gates = true_gates(sites, x)
    assert all(0 < gate.mean() < 1 for gate in gates)
    value, gradient = value_and_gradient(model, x)
    gated_value, gated_gradient = value_and_gradient(lambda x: sites.gated(x, gates)[0], x)
    assert gated_value.dtype == dtype
    for actual, expected in ((gated_value, value), (gated_gradient, gradient)):
        scale = expected.abs().max().item()
        torch.testing.assert_close(actual, expected, rtol=0, atol=TOLERANCE[dtype] * (1 + scale))
    wrong, _ = sites.gated(x, [1 - gate for gate in gates])
    assert (wrong - value).abs().max() > 1e-2


@cases(AFFINE)
def test_an_affine_network_passes_the_audit(case):
    model, x = case.model(), case.inputs()
    sites = discover(model, x)
    for row in range(5):
        assert audit(sites, x[row : row + 1], x[row + 1 : row + 2]) is None
