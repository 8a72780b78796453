"""Whether a network whose gates are frozen is affine."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from facetwalk.sites import Sites, audit, discover
from facetwalk.types import NotAffineWarning


def points(*shape: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    a, b = torch.randn(2, 1, *shape, dtype=torch.float64, generator=generator)
    return a, b


def sites_of(model: nn.Module, x: Tensor) -> Sites:
    return discover(model.eval().to(x.dtype), x)


@pytest.fixture(autouse=True)
def _seeded():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def pool_between() -> nn.Module:
    conv = [nn.Conv2d(1, 3, 2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(3, 4, 1), nn.ReLU()]
    return nn.Sequential(*conv, nn.Flatten(), nn.Linear(16, 2))


def pool_last() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 3, 2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())


def with_first(first: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(4, 6), first, nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 2))


@pytest.mark.parametrize(
    ("build", "shape", "where"),
    [
        pytest.param(pool_between, (1, 5, 5), "4#0", id="max-pool before a ReLU"),
        pytest.param(pool_last, (1, 5, 5), "output", id="max-pool after the last ReLU"),
        pytest.param(lambda: with_first(nn.GELU()), (4,), "3#0", id="gelu"),
        pytest.param(lambda: with_first(nn.Tanh()), (4,), "3#0", id="tanh"),
        pytest.param(lambda: with_first(nn.Softmax(1)), (4,), "3#0", id="softmax"),
        pytest.param(lambda: with_first(nn.LayerNorm(6)), (4,), "3#0", id="layer norm"),
        pytest.param(lambda: with_first(nn.Threshold(0, -3)), (4,), "3#0", id="a jump"),
        pytest.param(
            lambda: nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Softmax(1)),
            (4,),
            "output",
            id="softmax last",
        ),
        pytest.param(
            lambda: nn.TransformerEncoderLayer(4, 2, 6, batch_first=True),
            (5, 4),
            "model#0",
            id="transformer",
        ),
    ],
)
def test_what_is_not_affine_is_named(build, shape, where):
    a, b = points(*shape)
    sites = sites_of(build(), a)
    with pytest.warns(NotAffineWarning, match=f"not affine before {where}:") as caught:
        assert audit(sites, a, b) == where
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("length", [0.0, 1e-3, 1.0, 1e3])
def test_a_deep_relu_network_passes_at_every_distance(dtype, length):
    layers = [layer for _ in range(12) for layer in (nn.Linear(30, 30), nn.ReLU())]
    a, b = (point.to(dtype) for point in points(30))
    sites = sites_of(nn.Sequential(*layers, nn.Linear(30, 1)), a)
    assert audit(sites, a, a + length * (b - a)) is None


def test_relus_that_are_not_selected_are_not_frozen():
    a, b = points(4)
    sites = sites_of(with_first(nn.ReLU()), a)
    assert audit(sites, a, b) is None
    assert audit(sites.select("1"), a, a) is None
    with pytest.warns(NotAffineWarning, match="before 3#0"):
        assert audit(sites.select("last"), a, b) == "3#0"
    with pytest.warns(NotAffineWarning, match="before output"):
        assert audit(sites.select("1"), a, b) == "output"


def test_a_pool_that_keeps_its_choice_is_affine():
    a, b = points(1, 5, 5)
    sites = sites_of(pool_between(), a)
    assert audit(sites, a, a + 1e-9 * (b - a)) is None
