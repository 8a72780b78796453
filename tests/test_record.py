"""A coarse search goes on until a threshold is reached exactly, and counts every pass."""

from __future__ import annotations

import pytest
import torch
from test_loop import STEP, Ramp, Speed
from torch import Tensor, nn

import facetwalk as fw

SPEEDS = [1.0, 2.0, 0.5, 8.0]


class Flattering(nn.Module):
    """Says more than there is while torch may round products."""

    def __init__(self, more: float) -> None:
        super().__init__()
        self.more = more

    def forward(self, x: Tensor) -> Tensor:
        return x + self.more if torch.is_autocast_enabled("cpu") else x


def run(precision, more: float = 0.25, stop_at: float = 0.95, starts: int = 1, **options):
    box = fw.Box(torch.zeros(1, dtype=torch.float64), torch.full((1,), 9.0, dtype=torch.float64))
    speed = torch.tensor(SPEEDS, dtype=torch.float64)
    return fw.maximize(
        fw.Problem(Flattering(more).eval(), Speed(speed), box),
        solver=Ramp(steps=40),
        x0=torch.zeros(len(SPEEDS), starts, 1, dtype=torch.float64),
        starts=starts,
        stop_at=stop_at,
        precision=precision,
        **options,
    )


@pytest.mark.parametrize("starts", [1, 3])
def test_what_only_rounding_reaches_is_searched_on(starts):
    exact, coarse = run("full", starts=starts), run("bf16", starts=starts)
    assert set(coarse.status) == {fw.Status.REACHED}
    assert coarse.value.tolist() == exact.value.tolist()
    assert coarse.evaluations.backward.tolist() == exact.evaluations.backward.tolist()
    assert bool((coarse.evaluations.forward > exact.evaluations.forward).all())


def test_every_claim_costs_a_pass():
    """Claims of the first problem: when it is looked at after 6, and after 11 evaluations."""
    steps = 11
    assert 10 * STEP >= 0.95 > 5 * STEP
    assert 5 * STEP + 0.5 >= 0.95
    found = run("bf16", more=0.5)
    assert found.evaluations.backward.tolist()[0] == steps
    last = 1
    assert found.evaluations.forward.tolist()[0] == steps + 2 + last


def test_where_nothing_reaches_the_threshold_all_steps_are_taken():
    found = run("bf16", more=100.0, stop_at=50.0)
    assert found.status == (fw.Status.FINISHED,) * len(SPEEDS)
    assert found.value.tolist() == pytest.approx([40 * STEP * speed for speed in SPEEDS])
    assert found.evaluations.backward.tolist() == [40] * len(SPEEDS)


def test_chunks_of_problems_are_confirmed_each_on_its_own():
    whole, parts = run("bf16"), run("bf16", batch_size=1)
    assert parts.value.tolist() == whole.value.tolist()
    assert parts.evaluations.backward.tolist() == whole.evaluations.backward.tolist()


class Wild(nn.Module):
    """Near the edge it is not a number, once looked at closely."""

    def forward(self, x: Tensor) -> Tensor:
        return x if torch.is_autocast_enabled("cpu") else torch.where(x > 0.95, torch.nan, x)


def test_a_point_that_is_no_number_reaches_nothing():
    box = fw.Box(torch.zeros(1), torch.ones(1))
    problem = fw.Problem(Wild().eval(), fw.objectives.Output(0), box)
    found = fw.maximize(problem, solver=Ramp(), x0="center", stop_at=0.97, precision="bf16")
    assert set(found.status) == {fw.Status.FINISHED}
    assert found.evaluations.backward.tolist() == [20]
