"""Budgets in seconds."""

import time

import pytest
import torch
from tiny_networks import BOX, tiny
from torch import Tensor, nn

import facetwalk as fw
from facetwalk.objectives import Output
from facetwalk.solvers import Auto, Recombination, Sign


class Slow(nn.Module):
    """Takes a few milliseconds a pass, whatever the number of rows."""

    def __init__(self, pause: float) -> None:
        super().__init__()
        self.net, self.pause = tiny(), pause

    def forward(self, x: Tensor) -> Tensor:
        time.sleep(self.pause)
        return self.net(x)


class TestSeconds:
    """Tolerances are wide: these run on machines that do other things too."""

    def test_the_default_uses_its_time_and_ends(self):
        result = fw.maximize(fw.Problem(tiny(), Output(0), BOX), seconds=1.0)
        assert 0.6 < result.seconds < 2.5
        assert result.evaluations.backward.item() > 200

    @pytest.mark.parametrize("batch_size", [4, None])
    def test_chunks_share_it(self, batch_size):
        centers = torch.rand(4, 3, generator=torch.Generator().manual_seed(0))
        problem = fw.Problem(tiny(), Output(0), fw.LinfBall(centers, eps=0.1))
        result = fw.maximize(problem, seconds=1.6, batch_size=batch_size)
        assert 0.8 < result.seconds < 4
        spent = result.evaluations.backward
        assert spent.min() > 0
        assert spent.max() < 20 * spent.min()

    def test_slow_models_end_in_time_too(self):
        result = fw.maximize(fw.Problem(Slow(0.01).eval(), Output(0), BOX), seconds=0.5)
        assert result.seconds < 2.0
        assert result.value.item() >= result.initial_value.item()

    def test_too_little_time_is_still_one_evaluation(self):
        result = fw.maximize(fw.Problem(Slow(0.02).eval(), Output(0), BOX), seconds=1e-6)
        assert result.evaluations.backward.item() >= 1
        assert torch.isfinite(result.value).all()

    def test_generations_that_were_skipped_are_an_early_end(self):
        solver = Recombination(
            population=2, generations=10**5, first=Sign(steps=5), inner=Sign(steps=5)
        )
        result = fw.maximize(fw.Problem(tiny(), Output(0), BOX), solver=solver, seconds=0.3)
        assert result.seconds < 2.5
        assert set(result.status) == {fw.Status.STOPPED}

    def test_any_solver_stops(self):
        began = time.perf_counter()
        result = fw.maximize(
            fw.Problem(tiny(), Output(0), BOX), solver=Sign(steps=10**6), seconds=0.4
        )
        assert time.perf_counter() - began < 2.5
        assert 0 < result.evaluations.backward.item() < 10**6

    def test_a_solver_that_is_done_before_does_not_wait(self):
        problem = fw.Problem(tiny(), Output(0), BOX)
        timed = fw.maximize(problem, solver=Sign(steps=20), seconds=60)
        assert timed.seconds < 30
        assert torch.equal(timed.x, fw.maximize(problem, solver=Sign(steps=20)).x)

    def test_as_a_setting_of_auto(self):
        steps = []

        def watch(step: fw.Step) -> bool:
            steps.append(time.perf_counter())
            return steps[-1] - steps[0] > 2.5

        result = fw.maximize(
            fw.Problem(tiny(), Output(0), BOX), solver=Auto(seconds=0.3), callback=watch
        )
        assert result.seconds < 2
