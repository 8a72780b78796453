"""Objectives and models of a user's own, and the precision of a search."""

from dataclasses import dataclass

import pytest
import torch
from small_classifier import QUICK, classifier
from torch import nn

import facetwalk as fw
from facetwalk.models import PerProblemModel
from facetwalk.solvers import AdrGd, Apgd, Gd, Sign
from facetwalk.zoo import StackedNetworks, random_network


class TestOwnParts:
    def test_a_plain_function_is_an_objective(self):
        net = classifier()
        space = fw.Box(-1, 1, shape=(6,))
        own = fw.maximize(fw.Problem(net, lambda y: -y[:, 1], space), solver=QUICK)
        ours = fw.maximize(fw.Problem(net, fw.objectives.Output(1, sign=-1), space), solver=QUICK)
        assert torch.equal(own.x, ours.x)

    def test_an_objective_of_ones_own_may_hold_numbers_and_rows(self):
        @dataclass(frozen=True, eq=False)
        class Weighted(fw.objectives.Objective):
            scale: torch.Tensor
            index: torch.Tensor

            def __call__(self, outputs):
                return self.scale * outputs.gather(1, self.index[:, None]).squeeze(1)

        net, space = classifier(), fw.Box(-1, 1, shape=(6,))
        index = torch.tensor([2, 0, 1])
        own = Weighted(torch.tensor(-3.0), index)
        together = fw.maximize(fw.Problem(net, own, space), solver=QUICK, starts=2, batch_size=4)
        for b, output in enumerate(index.tolist()):
            alone = fw.Problem(net, fw.objectives.Output(output, sign=-1), space)
            value = fw.maximize(alone, solver=QUICK, starts=2, seed=b).value
            assert torch.allclose(3 * value[0], together.value[b])

    def test_a_function_may_take_any_output(self):
        class TwoHeads(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = classifier()

            def forward(self, x):
                return {"scores": self.net(x)}

        problem = fw.Problem(
            TwoHeads().eval(), lambda out: out["scores"][:, 0], fw.Box(-1, 1, shape=(6,))
        )
        assert fw.maximize(problem, solver=QUICK).value.item() > 0
        assert fw.maximize(problem, solver=AdrGd(steps=20)).value.item() > 0

    def test_a_space_of_ones_own(self):
        @dataclass(frozen=True)
        class Halfspace(fw.Space):
            """Points of a box around `middle` whose sum is at most that of `middle`."""

            middle: torch.Tensor

            @property
            def shape(self):
                return tuple(self.middle.shape[1:])

            @property
            def center(self):
                return self.middle

            @property
            def radius(self):
                return torch.ones_like(self.middle)

            def project(self, x):
                excess = (x - self.middle).sum(1, keepdim=True).clamp(min=0)
                return x - excess / x.shape[1]

        middle = torch.zeros(3, 6, dtype=torch.float64)
        problem = fw.Problem(
            classifier(), fw.objectives.Margin(torch.tensor([0, 1, 2])), Halfspace(middle)
        )
        result = fw.maximize(problem, solver=Sign(steps=30), starts=3, stop_at=50.0)
        assert (result.x.sum(1) <= 1e-9).all()
        assert (result.value > result.initial_value).all()

    def test_models_with_data_for_each_problem_follow_their_rows(self):
        nets = [random_network((4, 9, 1), seed) for seed in range(6)]
        space = fw.Box(-1, 1, shape=(4,))
        together = fw.maximize(
            fw.Problem(StackedNetworks(nets), fw.objectives.Output(0), space),
            solver=AdrGd(steps=25),
            starts=3,
            stop_at=4.0,
            batch_size=7,
        )
        for i, net in enumerate(nets):
            alone = fw.maximize(
                fw.Problem(net, fw.objectives.Output(0), space),
                solver=AdrGd(steps=25),
                starts=3,
                stop_at=4.0,
                seed=i,
                batch_size=7,
            )
            assert alone.value.item() == pytest.approx(together.value[i].item(), abs=1e-4)

    def test_a_state_that_is_fixed_for_each_problem(self):
        class Critic(PerProblemModel):
            def __init__(self, states, net):
                super().__init__()
                self.states, self.net = states, net
                self.eval()

            @property
            def count(self):
                return len(self.states)

            def select(self, rows):
                return Critic(self.states[rows], self.net)

            def forward(self, actions):
                copies = -(-len(actions) // self.count)
                states = self.states.repeat(copies, 1)[: len(actions)]
                return self.net(torch.cat([states, actions], 1))

        net = random_network((5, 20, 1), seed=0)
        states = torch.randn(8, 3, generator=torch.Generator().manual_seed(0))
        problem = fw.Problem(
            Critic(states, net), fw.objectives.Output(0), fw.Box(-1, 1, shape=(2,))
        )
        result = fw.maximize(problem, solver=Gd(steps=400), starts=8, batch_size=5)
        gated = fw.maximize(problem, solver=AdrGd(steps=20), starts=8, batch_size=5)
        assert (gated.value > gated.initial_value).all()
        axis = torch.linspace(-1, 1, 101)
        actions = torch.cartesian_prod(axis, axis)
        for i in range(8):
            best = net(torch.cat([states[i].expand(len(actions), 3), actions], 1)).max()
            assert result.value[i] >= best - 0.05


class TestPrecision:
    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
    def test_work_is_done_in_the_models_precision(self, dtype):
        net = classifier().to(dtype)
        space = fw.LinfBall(torch.full((3, 6), 0.5), eps=0.2, bounds=(0, 1))
        problem = fw.Problem(net, fw.objectives.CrossEntropy(torch.tensor([0, 1, 2])), space)
        for solver in (QUICK, Apgd(steps=10)):
            result = fw.maximize(problem, solver=solver, starts=2)
            assert result.x.dtype == dtype
            assert (result.value >= result.initial_value).all()

    def test_a_model_without_weights_follows_the_space(self):
        center = torch.zeros(2, 3, dtype=torch.float64)
        problem = fw.Problem(nn.ReLU().eval(), lambda y: y.sum(1), fw.L2Ball(center, eps=1.0))
        result = fw.maximize(problem, solver=QUICK, x0=center + 0.1)
        assert result.x.dtype == torch.float64
        assert result.value.tolist() == pytest.approx([3**0.5] * 2, abs=1e-2)
