"""In-place ReLUs under interception: the gradient of plain torch, without work for nothing."""

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from facetwalk.sites.interception import Interception


class Part(nn.Module):
    """ReLUs on a part of a tensor, in place; the result is dropped."""

    def forward(self, x: Tensor) -> Tensor:
        z = 2 * x
        z[:, :3].relu_()
        return z


class Whole(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        z = 2 * x
        z.relu_()
        return z


MODELS = {
    "module": nn.Sequential(nn.Linear(5, 6), nn.ReLU(inplace=True), nn.Linear(6, 4)),
    "twice": nn.Sequential(*[nn.Linear(5, 5), nn.ReLU(inplace=True)] * 2),
    "result dropped": nn.Sequential(Whole(), nn.Linear(5, 4)),
    "a part": nn.Sequential(Part(), nn.Linear(5, 4)),
    "leaky": nn.Sequential(nn.Linear(5, 6), nn.LeakyReLU(0.2, inplace=True), nn.Linear(6, 4)),
}


def gradient(model: nn.Module, x: Tensor) -> Tensor:
    leaf = x.clone().requires_grad_()
    (found,) = torch.autograd.grad(model(leaf).square().sum(), leaf)
    return found


@pytest.mark.parametrize("name", MODELS)
def test_gradients_are_those_of_the_model_itself(name):
    model = MODELS[name].double()
    x = torch.randn(7, 5, generator=torch.Generator().manual_seed(0)).double()
    expected = gradient(model, x)
    with Interception(lambda number, z: torch.relu(z)):
        found = gradient(model, x)
    assert expected.abs().max() > 0
    torch.testing.assert_close(found, expected)


class Names(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(func._schema.name)
        return func(*args, **(kwargs or {}))


def test_the_way_back_through_an_in_place_relu_adds_no_zeros():
    leaf = torch.randn(7, 5).requires_grad_()
    with Interception(lambda number, z: torch.relu(z)):
        output = MODELS["module"].float()(leaf)
    with Names() as names:
        torch.autograd.grad(output.sum(), leaf)
    assert "aten::threshold_backward" in names.seen
    assert not {"aten::zeros_like", "aten::zeros", "aten::add", "aten::add_"} & set(names.seen)
