"""Models whose ReLUs change from call to call, or that cannot be looked into."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from site_cases import PARAMETER, Case, Model, transformer, true_gates, value_and_gradient
from torch import Tensor, nn

from facetwalk.sites import audit, discover
from facetwalk.types import ModelError


def branching(extra: int = 0) -> nn.Module:
    """Two ways through the network; the one for a negative input has `extra` more ReLUs."""

    def forward(self: Any, x: Tensor) -> Tensor:
        if x.sum() > 0:
            return self.last(F.relu(self.up(x)))
        z = F.relu(self.down(x))
        for _ in range(extra):
            z = F.relu(z - 0.1)
        return self.last(z)

    return Model(forward, up=nn.Linear(4, 6), down=nn.Linear(4, 6), last=nn.Linear(6, 2))


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("discovered_on", [1, -1])
def test_a_branch_on_the_data_is_followed(side, discovered_on):
    case = Case(branching, (4,), [])
    model, x = case.model(), case.inputs().abs()
    sites = discover(model, discovered_on * x)
    assert [(site.name, site.shape) for site in sites] == [("model#0", (6,))]
    x = side * x
    gates = true_gates(sites, x)
    for actual, expected in zip(
        value_and_gradient(lambda x: sites.gated(x, gates)[0], x),
        value_and_gradient(model, x),
        strict=True,
    ):
        torch.testing.assert_close(actual, expected, rtol=0, atol=1e-9)
    assert audit(sites, x[:1], x[1:2]) is None


@pytest.mark.parametrize(("discovered_on", "before", "now"), [(1, 1, 3), (-1, 3, 1)])
def test_a_number_of_relus_that_changes_is_refused(discovered_on, before, now):
    case = Case(lambda: branching(extra=2), (4,), [])
    x = case.inputs().abs()
    sites = discover(case.model(), discovered_on * x)
    assert len(sites) == before
    sites.pre_activations(discovered_on * x)
    with pytest.raises(ModelError, match=f"{now} ReLUs in this pass and {before} when"):
        sites.pre_activations(-discovered_on * x)


def test_a_shape_that_changes_is_refused():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU()).eval()
    sites = discover(model, torch.randn(1, 1, 5, 5))
    with pytest.raises(ModelError, match=r"site 1#0 had shape \(2, 3, 3\) .* \(4, 2, 5, 5\)"):
        sites.pre_activations(torch.randn(4, 1, 7, 7))


def transposed(inner: nn.Module) -> nn.Module:
    return Model(lambda self, x: self.inner(x.transpose(0, 1)).transpose(0, 1), inner=inner)


def relu_of_the_mean() -> nn.Module:
    return Model(lambda self, x: x + F.relu(x.mean(0)))


@pytest.mark.parametrize(
    ("build", "shape"),
    [
        pytest.param(lambda: transposed(transformer(False)), (5, 4), id="transformer, length 5"),
        pytest.param(lambda: transposed(transformer(False)), (6, 4), id="transformer, length 6"),
        pytest.param(lambda: transposed(nn.ReLU()), (2, 4), id="transposed, length 2"),
        pytest.param(lambda: transposed(nn.ReLU()), (3, 4), id="transposed, length 3"),
        pytest.param(lambda: transformer(False), (5, 4), id="attention between rows"),
        pytest.param(relu_of_the_mean, (4,), id="mean over the batch, 4 features"),
        pytest.param(relu_of_the_mean, (6,), id="mean over the batch, 6 features"),
        pytest.param(lambda: Model(lambda self, x: x * F.relu(x.sum())), (4,), id="sum of all"),
    ],
)
def test_a_site_that_is_not_batch_first_is_refused(build, shape):
    case = Case(build, shape, [])
    with pytest.raises(ModelError, match="batch"):
        discover(case.model(), case.inputs(4))


@pytest.mark.parametrize(
    "build",
    [
        lambda: nn.Linear(4, 2),
        lambda: nn.Sequential(nn.Linear(4, 3), nn.GELU(), nn.Linear(3, 1)),
        lambda: Model(lambda self, x: x * F.relu(PARAMETER[:4])),
    ],
    ids=["linear", "gelu", "relu of a parameter"],
)
def test_a_model_without_relus_is_refused(build):
    with pytest.raises(ModelError, match="no ReLU was found"):
        discover(build().eval().double(), torch.ones(2, 4, dtype=torch.float64))


@pytest.mark.parametrize("inside", [False, True], ids=["itself", "a part"])
@pytest.mark.parametrize("make", ["script", "trace"])
def test_torchscript_is_refused(make, inside):
    net = nn.Sequential(nn.Linear(4, 3), nn.ReLU()).eval()
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        script = torch.jit.script(net) if make == "script" else torch.jit.trace(net, torch.ones(4))
        model = nn.Sequential(script).eval() if inside else script
        with pytest.raises(ModelError, match="TorchScript"):
            discover(model, torch.ones(1, 4))
