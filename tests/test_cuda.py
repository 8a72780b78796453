"""The same answers on a GPU, where there is one."""

import pytest
import torch

import facetwalk as fw
from facetwalk import solvers
from facetwalk.zoo import random_network

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


@pytest.mark.parametrize("solver", solvers.BY_NAME.values(), ids=solvers.BY_NAME)
def test_results_and_random_numbers_are_those_of_the_cpu(solver):
    net = random_network((12, 24, 24, 4), seed=0).double()
    centers = torch.rand(8, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    space = fw.L2Ball(centers, eps=0.5, bounds=(0, 1))
    objective = fw.objectives.CrossEntropy(torch.arange(8) % 4)
    before = torch.cuda.get_rng_state()
    values = [
        fw.maximize(
            fw.Problem(net.to(device), objective, space), solver=solver(), starts=3, x0="sample"
        ).value.cpu()
        for device in ("cpu", "cuda")
    ]
    assert torch.allclose(*values, atol=1e-4)
    assert torch.equal(before, torch.cuda.get_rng_state())
