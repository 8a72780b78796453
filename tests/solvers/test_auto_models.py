"""The default works on whatever model it is given."""

from __future__ import annotations

import pytest
import torch
from tiny_networks import BOX, looks_at_relus, tiny
from torch import Tensor, nn

import facetwalk as fw
from facetwalk.models import PerProblemModel
from facetwalk.objectives import Output
from facetwalk.zoo import StackedNetworks, random_network


class Strict(PerProblemModel):
    """Keeps to the letter of the contract: k * count rows, or fewer than count."""

    def __init__(self, states: Tensor, net: nn.Module) -> None:
        super().__init__()
        self.states, self.net = states, net
        self.eval()

    @property
    def count(self) -> int:
        return len(self.states)

    def select(self, rows: Tensor) -> Strict:
        return Strict(self.states[rows], self.net)

    def forward(self, x: Tensor) -> Tensor:
        assert len(x) < self.count or len(x) % self.count == 0
        copies = max(1, len(x) // self.count)
        return self.net(torch.cat([self.states.repeat(copies, 1)[: len(x)], x], 1))


class TestModels:
    """What the default does not know it does without."""

    @pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
    @pytest.mark.parametrize(
        "compile",
        [torch.jit.script, lambda net: torch.jit.trace(net, torch.zeros(2, 3))],
        ids=["script", "trace"],
    )
    def test_torchscript(self, compile):
        net = tiny()
        result = fw.maximize(fw.Problem(compile(net).eval(), Output(0), BOX), evaluations=300)
        assert not looks_at_relus(result.solver)
        open_ = fw.maximize(fw.Problem(net, Output(0), BOX), evaluations=300)
        assert result.value.item() == pytest.approx(open_.value.item(), abs=1e-4)

    def test_linear(self):
        net = tiny(relus=False)
        result = fw.maximize(fw.Problem(net, Output(0), BOX))
        best = net[0].weight.abs().sum() + net[0].bias.sum()
        assert result.value.item() == pytest.approx(best.item())
        assert not looks_at_relus(result.solver)

    def test_smooth(self):
        net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)).eval()
        result = fw.maximize(fw.Problem(net, Output(0), BOX), evaluations=300)
        axis = torch.linspace(-1, 1, 21)
        grid = net(torch.cartesian_prod(axis, axis, axis)).max().item()
        assert result.value.item() >= grid - 1e-3

    def test_rows_that_see_each_other(self):
        class Centred(nn.Module):
            def forward(self, x):
                return torch.relu(x - x.mean(0)).sum(1, keepdim=True) + x[:, :1]

        result = fw.maximize(fw.Problem(Centred().eval(), Output(0), BOX), evaluations=100)
        assert not looks_at_relus(result.solver)

    def test_a_network_for_each_problem(self):
        nets = [random_network((3, 6, 1), seed).double() for seed in range(5)]
        together = fw.maximize(fw.Problem(StackedNetworks(nets), Output(0), BOX), evaluations=300)
        for i, net in enumerate(nets):
            alone = fw.maximize(fw.Problem(net, Output(0), BOX), evaluations=300, seed=i)
            assert alone.value.item() == pytest.approx(together.value[i].item(), abs=1e-4)

    @pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
    def test_a_state_for_each_problem(self, count):
        generator = torch.Generator().manual_seed(0)
        model = Strict(torch.randn(count, 2, generator=generator), random_network((5, 9, 1), 0))
        result = fw.maximize(fw.Problem(model, Output(0), BOX), evaluations=200)
        assert (result.value >= result.initial_value).all()

    @pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
    def test_any_precision(self, dtype):
        problem = fw.Problem(tiny().to(dtype), Output(0), BOX)
        result = fw.maximize(problem, evaluations=250)
        assert result.x.dtype == dtype
        assert result.value.item() >= result.initial_value.item()

    def test_any_output(self):
        class TwoHeads(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = tiny()

            def forward(self, x):
                return {"score": self.net(x)[:, 0], "rest": (x,)}

        problem = fw.Problem(TwoHeads().eval(), lambda out: out["score"], BOX)
        plain = fw.Problem(tiny(), Output(0), BOX)
        results = [fw.maximize(p, evaluations=300).x for p in (problem, plain)]
        assert torch.equal(*results)
