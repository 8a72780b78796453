"""The imitation of a GPU: what it takes, and what it refuses."""

import numpy as np
import pytest
import torch
from emulated_cuda import emulated_cuda, needs_no_gpu
from torch import nn

pytestmark = needs_no_gpu


@pytest.mark.parametrize(
    "misplaced",
    [
        lambda x: x + torch.ones(3),
        lambda x: torch.cat([x, torch.ones(1)]),
        lambda x: torch.where(torch.ones(3) > 0, x, 0.0),
        lambda x: torch.ones(3)[x.long()],
        lambda x: torch.ones(3).add_(x),
        lambda x: torch.zeros(()).add_(x[0]),
        lambda x: x.gather(0, torch.zeros(1, dtype=torch.int64)),
        lambda x: x.index_select(0, torch.tensor(0)),
        lambda x: x.index_put((torch.tensor([0]),), torch.ones(1)),
        lambda x: nn.Linear(3, 1)(x),
        lambda x: torch.rand(3, device="cuda", generator=torch.Generator()),
    ],
)
def test_it_refuses_what_a_gpu_refuses(misplaced):
    with emulated_cuda():
        x = torch.ones(3, device="cuda")
        with pytest.raises(RuntimeError, match="device"):
            misplaced(x)


@pytest.mark.parametrize("view", [lambda x: x.numpy(), np.asarray])
def test_numpy_does_not_see_it(view):
    with emulated_cuda(), pytest.raises(TypeError, match="convert cuda"):
        view(torch.ones(3, device="cuda"))


def test_it_takes_what_a_gpu_takes():
    with emulated_cuda():
        x = torch.tensor([1.0, 2.0, 3.0], device="cuda")
        x[torch.tensor([0, 2])] = torch.tensor(5.0)
        x[:1] = torch.zeros(1)
        assert (x * torch.tensor(2.0))[[0, 1]].tolist() == [0, 4]
        assert torch.zeros(3).copy_(x).tolist() == x.cpu().tolist() == [0, 2, 5]
        assert x.new_zeros(1).is_cuda


def test_afterwards_there_is_none():
    with emulated_cuda():
        pass
    assert not torch.cuda.is_available()
    with pytest.raises((AssertionError, RuntimeError)):
        torch.ones(3, device="cuda")
