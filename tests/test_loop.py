"""The loop's accounts, with a solver whose every value is known beforehand."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import facetwalk as fw
from facetwalk import loop
from facetwalk.objectives import Objective
from facetwalk.solvers import Recombination, Solver
from facetwalk.solvers.gd import Point

STEP = 0.1


@dataclass(frozen=True, kw_only=True)
class Ramp(Solver):
    """Moves up by the same amount at each step: after t steps from zero, x is t * STEP."""

    steps: int = 20

    def init(self, task: Any, x: Tensor) -> Point:
        return Point(x)

    def step(self, task: Any, state: Point, t: int) -> tuple[Point, Tensor]:
        value, _, _ = task.evaluate(state.x)
        return Point(task.space.project(state.x + STEP)), value


@dataclass(frozen=True, eq=False)
class Speed(Objective):
    """`speed_b` times the first input of problem b."""

    speed: Tensor

    def __call__(self, outputs: Tensor) -> Tensor:
        return self.speed * outputs[:, 0]


def problem(speeds: list[float]) -> fw.Problem:
    speed = torch.tensor(speeds, dtype=torch.float64)
    box = fw.Box(torch.zeros(1, dtype=torch.float64), torch.full((1,), 1e6, dtype=torch.float64))
    return fw.Problem(nn.Identity().eval(), Speed(speed), box)


def run(speeds: list[float], solver=None, starts: int = 1, **options) -> fw.Result:
    """From zero everywhere."""
    zeros = torch.zeros(len(speeds), starts, 1)
    return fw.maximize(problem(speeds), solver=solver or Ramp(), x0=zeros, starts=starts, **options)


def test_the_last_point_counts_too():
    result = run([1.0, 2.0])
    assert result.value.tolist() == pytest.approx([20 * STEP, 40 * STEP])
    assert result.x.flatten().tolist() == pytest.approx([20 * STEP] * 2)
    assert result.initial_value.tolist() == [0, 0]
    assert result.evaluations.backward.tolist() == [20, 20]
    assert result.evaluations.forward.tolist() == [22, 22]  # the last point, and once more


def test_a_falling_objective_keeps_the_first_point():
    result = run([-1.0])
    assert (result.x.item(), result.value.item()) == (0, 0)


class TestInitialValue:
    POINTS = torch.tensor([[[3.0], [9.0]], [[4.0], [0.0]], [[5.0], [6.0]]])

    @pytest.mark.parametrize("batch_size", [1, 2, 3, 100])
    def test_it_is_that_of_the_first_start(self, batch_size):
        result = fw.maximize(
            problem([1.0, 2.0, 3.0]),
            solver=Ramp(),
            x0=self.POINTS,
            starts=2,
            batch_size=batch_size,
        )
        assert result.initial_value.tolist() == [3, 8, 15]
        top = 20 * STEP
        assert result.value.tolist() == pytest.approx([9 + top, 8 + 2 * top, 18 + 3 * top])

    def test_and_of_its_first_member(self):
        solver = Recombination(population=3, generations=2, first=Ramp(), inner=Ramp())
        result = fw.maximize(
            problem([1.0, 2.0, 3.0]), solver=solver, x0=self.POINTS[:, 0], batch_size=4
        )
        assert result.initial_value.tolist() == [3, 8, 15]

    def test_it_is_known_of_problems_that_are_solved_at_once(self):
        result = run([1.0, 2.0], stop_at=-1.0)
        assert result.initial_value.tolist() == [0, 0]
        assert result.evaluations.backward.tolist() == [1, 1]

    def test_it_is_known_however_little_time_there_is(self):
        solver = Recombination(population=3, generations=3, first=Ramp(), inner=Ramp())
        result = fw.maximize(problem([1.0, 2.0]), solver=solver, x0=torch.ones(2, 1), seconds=1e-9)
        assert result.initial_value.tolist() == [1, 2]
        assert set(result.status) == {fw.Status.STOPPED}
        assert result.evaluations.backward.min() >= 3


class TestLeaving:
    SPEEDS = (0.2, 1.0, 0.5, 5.0, 2.0)

    def checked(self, speed: float, steps: int, threshold: float = 1.0) -> int | None:
        """The step, from zero, at which this problem is found to have reached the threshold."""
        for t in range(steps):
            if t % loop._CHECK_EVERY == 0 and speed * STEP * t >= threshold - 1e-12:
                return t
        return None

    @pytest.mark.parametrize("starts", [1, 3])
    @pytest.mark.parametrize("batch_size", [None, 3, 4])
    def test_those_who_left_take_no_more_evaluations(self, starts, batch_size):
        batch_size = batch_size and batch_size * starts
        result = run(
            list(self.SPEEDS),
            Ramp(steps=30),
            starts,
            stop_at=1.0 - 1e-9,
            batch_size=batch_size,
        )
        for b, speed in enumerate(self.SPEEDS):
            left = self.checked(speed, 30)
            taken = 30 if left is None else left + 1
            assert result.evaluations.backward[b] == starts * taken
            reached = speed * STEP * 30 >= 1
            assert (result.status[b] == fw.Status.REACHED) == reached

    def test_their_points_change_no_more(self):
        result = run(list(self.SPEEDS), Ramp(steps=30), stop_at=1.0 - 1e-9)
        for b, speed in enumerate(self.SPEEDS):
            left = self.checked(speed, 30)
            last = 30 if left is None else left
            assert result.x[b].item() == pytest.approx(STEP * last)
            assert result.value[b].item() == pytest.approx(speed * STEP * last)

    def test_nor_do_their_traces(self):
        result = run(list(self.SPEEDS), Ramp(steps=30), stop_at=1.0 - 1e-9, trace=True)
        for b, speed in enumerate(self.SPEEDS):
            left = self.checked(speed, 30)
            for t in range(29):
                best = speed * STEP * (t if left is None else min(t, left))
                assert result.trace.best[b, t].item() == pytest.approx(best)
            assert result.trace.best[b, -1] == result.value[b]

    def test_later_starts_of_a_problem_that_is_done_are_not_begun(self):
        seen = []
        result = run(
            [50.0, 0.1],
            Ramp(steps=12),
            4,
            stop_at=1.0,
            batch_size=2,
            callback=lambda step: seen.append(step.problem.tolist()),
        )
        assert result.evaluations.backward.tolist() == [2 * 6, 4 * 12]
        assert seen == [[0, 0]] * 6 + [[1, 1]] * 24

    def test_a_population_leaves_as_a_whole(self):
        solver = Recombination(
            population=4, generations=3, first=Ramp(steps=10), inner=Ramp(steps=10)
        )
        sizes = []
        zeros = torch.zeros(2, 1)
        result = fw.maximize(
            problem([1e-9, 1.0]),
            solver=solver,
            x0=zeros,
            stop_at=torch.tensor([1e9, -1.0]),
            callback=lambda step: sizes.append(step.problem.tolist()),
        )
        assert sizes == [[0] * 4 + [1] * 4] + [[0] * 4] * 29
        assert result.evaluations.backward.tolist() == [120, 4]


class TestTrace:
    def test_evaluations_are_population_times_steps(self):
        first, inner = Ramp(steps=7), Ramp(steps=4)
        solver = Recombination(population=5, generations=3, first=first, inner=inner)
        result = fw.maximize(problem([1.0, 2.0]), solver=solver, trace=True)
        assert result.trace.evaluations.tolist() == [5 * t for t in range(1, 16)]
        assert result.evaluations.backward.tolist() == [75, 75]
        assert (result.trace.best.diff(dim=1) >= 0).all()
        assert torch.equal(result.trace.best[:, -1], result.value)

    def test_a_solver_with_two_gradients_a_step_counts_both(self):
        class Twice(Ramp):
            gradients_per_step = 2

            def step(self, task, state, t):
                task.evaluate(state.x)
                return super().step(task, state, t)

        solver = Recombination(
            population=3, generations=2, first=Ramp(steps=2), inner=Twice(steps=2)
        )
        result = fw.maximize(problem([1.0]), solver=solver, trace=True)
        assert result.trace.evaluations.tolist() == [3, 6, 12, 18]
        assert result.evaluations.backward.tolist() == [18]

    def test_it_is_the_best_so_far_over_all_generations(self):
        points, speeds = [], torch.tensor([-1.0, 2.0], dtype=torch.float64)
        solver = Recombination(
            population=5, generations=4, first=Ramp(steps=3), inner=Ramp(steps=3)
        )
        result = fw.maximize(
            problem(speeds.tolist()),
            solver=solver,
            trace=True,
            callback=lambda step: points.append(step.x.reshape(2, 5)),
        )
        best, running = torch.full((2,), -torch.inf, dtype=torch.float64), []
        for t, x in enumerate(points):
            known = [x, x + STEP] if t % 3 == 2 else [x]  # a round ends with one point more
            for seen in known:
                best = torch.maximum(best, (speeds[:, None] * seen).amax(1))
            running.append(best)
        torch.testing.assert_close(result.trace.best, torch.stack(running, 1))

    def test_it_ends_at_the_value_when_a_callback_ends_the_work(self):
        result = run(
            [1.0, 2.0], Ramp(steps=1000), trace=True, callback=lambda step: step.step == 333
        )
        assert torch.equal(result.trace.best[:, -1], result.value)
        assert result.trace.evaluations[-1] <= 333

    def test_long_runs_are_thinned(self):
        solver = Recombination(
            population=2, generations=5, first=Ramp(steps=100), inner=Ramp(steps=100)
        )
        trace = fw.maximize(problem([1.0]), solver=solver, trace=True).trace
        assert len(trace.evaluations) <= 250
        assert trace.evaluations[-1] == 1000
        assert (trace.evaluations.diff() > 0).all()


class TestRounds:
    """What a solver begins a round with."""

    def begun(self, speeds: list[float], **options) -> list[tuple[Any, ...]]:
        seen, solvers = [], []

        class Spy(Ramp):
            def init(self, task, x):
                seen.append((len(x),))
                return Point(x)

            def again(self, task, x, before):
                assert len(before.state.x) == len(x)
                seen.append((len(x), before.state.x.unique().tolist(), before.steps))
                solvers.append(before.solver)
                return Point(torch.full_like(x, float(before.steps.stop)))

        first, inner = Spy(steps=3), Spy(steps=4)
        solver = Recombination(
            population=2, generations=3, first=first, inner=inner, polish=Spy(steps=2), finish=first
        )
        fw.maximize(problem(speeds), solver=solver, x0=torch.zeros(len(speeds), 1), **options)
        assert solvers == [*solver.rounds[:-1]] * (len(solvers) // 4)
        return seen

    def test_later_ones_begin_with_what_the_one_before_ended_with(self):
        first, *later = self.begun([1.0, 2.0])
        assert first == (4,)
        took = [range(3), range(3, 7), range(7, 11), range(11, 13)]
        assert [steps for _, _, steps in later] == took
        ends = [x for _, x, _ in later[1:]]
        assert ends == [pytest.approx([end]) for end in (3 + 4 * STEP, 7 + 4 * STEP, 11 + 2 * STEP)]

    def test_every_chunk_begins_anew(self):
        rounds = self.begun([1.0, 2.0, 3.0], batch_size=4)
        assert [len(seen) for seen in rounds] == [1, 3, 3, 3, 3] * 2
        assert [rows for rows, *_ in rounds] == [4] * 5 + [2] * 5

    def test_those_who_left_have_left_it_too(self):
        rounds = self.begun([-1.0, 1.0, 1e-9, 2.0, -2.0], stop_at=5.0)
        assert [rows for rows, *_ in rounds] == [10, 6, 6, 6, 6]


class TestCallbacks:
    def test_numbers_of_problems_are_right_in_every_chunk(self):
        seen: dict[int, set[int]] = {}
        values: dict[int, float] = {}

        def watch(step: fw.Step) -> None:
            seen.setdefault(step.chunk, set()).update(step.problem.tolist())
            if step.step == 2:
                values.update(zip(step.problem.tolist(), step.value.tolist(), strict=True))
            assert step.chunks == 3
            assert len(step.problem) == len(step.x) == len(step.value) == len(step.best)

        run([1.0, 2.0, 3.0, 4.0, 5.0], batch_size=2, callback=watch)
        assert seen == {0: {0, 1}, 1: {2, 3}, 2: {4}}
        assert values == pytest.approx({b: (b + 1) * STEP for b in range(5)})

    def test_also_when_first_problems_are_done(self):
        """A chunk that would begin with a problem that an earlier chunk has solved."""
        seen = []
        result = run(
            [50.0, 1e-3, 2e-3],
            Ramp(steps=6),
            4,
            batch_size=3,
            stop_at=1.0,
            callback=lambda step: seen.append((step.problem.tolist(), step.value.tolist())),
        )
        assert [problems for problems, _ in seen[5::6]] == [[0] * 3, [1] * 2, [1, 1, 2], [2] * 3]
        assert seen[11][1] == pytest.approx([5e-3 * STEP] * 2)
        assert seen[17][1] == pytest.approx([5e-3 * STEP] * 2 + [10e-3 * STEP])
        assert result.value[1:].tolist() == pytest.approx([6e-3 * STEP, 12e-3 * STEP])
        assert result.initial_value.tolist() == [0, 0, 0]
        assert result.evaluations.backward.tolist() == [3 * 6, 4 * 6, 4 * 6]

    def test_steps_are_counted_over_generations(self):
        steps = []
        solver = Recombination(
            population=2, generations=3, first=Ramp(steps=4), inner=Ramp(steps=3)
        )
        fw.maximize(
            problem([1.0]),
            solver=solver,
            callback=lambda step: steps.append((step.step, step.steps)),
        )
        assert steps == [(t, 10) for t in range(1, 11)]

    @pytest.mark.parametrize("at", [1, 5, 13])
    def test_one_that_says_true_ends_everything(self, at):
        calls = []

        def watch(step: fw.Step) -> bool:
            calls.append((step.chunk, step.step))
            return step.step == at

        solver = Recombination(
            population=2, generations=3, first=Ramp(steps=6), inner=Ramp(steps=6)
        )
        result = fw.maximize(problem([1.0] * 4), solver=solver, batch_size=4, callback=watch)
        assert calls == [(0, t) for t in range(1, at + 1)]
        assert result.evaluations.backward.tolist() == [2 * at, 2 * at, 0, 0]
        assert set(result.status) == {fw.Status.STOPPED}
        assert torch.isfinite(result.value).all()

    @pytest.mark.parametrize("answer", [None, 0, 1, "yes", torch.tensor(1), np.int64(1)])
    def test_no_other_answer_does(self, answer):
        result = run([1.0], callback=lambda step: answer)
        assert result.evaluations.backward.item() == 20

    @pytest.mark.parametrize("answer", [True, torch.tensor(True), np.bool_(True)])
    def test_true_does_in_every_library(self, answer):
        result = run([1.0], callback=lambda step: answer)
        assert result.evaluations.backward.item() == 1

    def test_problems_that_had_no_turn_stay_where_they_were_to_start(self):
        start = torch.tensor([[0.1], [0.2], [0.3]])
        result = fw.maximize(
            problem([1.0] * 3),
            solver=Ramp(),
            x0=start.double(),
            batch_size=1,
            callback=lambda step: True,
        )
        assert result.x[1:].flatten().tolist() == pytest.approx([0.2, 0.3])
        assert result.initial_value.tolist() == pytest.approx([0.1, 0.2, 0.3])

    def test_what_was_found_until_then_is_kept(self):
        result = run([1.0], callback=lambda step: step.step == 8)
        assert result.value.item() == pytest.approx(8 * STEP)

    def test_a_callback_may_raise(self):
        def watch(step: fw.Step) -> None:
            raise KeyError("own")

        with pytest.raises(KeyError, match="own"):
            run([1.0], callback=watch)


def test_values_that_are_no_numbers_are_never_the_best():
    class Holes(nn.Module):
        def forward(self, x):
            return torch.where((x > 0.35) & (x < 5), torch.nan, x)

    result = fw.maximize(
        fw.Problem(Holes().eval(), fw.objectives.Output(0), problem([1.0]).space),
        solver=Ramp(),
        x0=torch.zeros(1, 1),
    )
    assert result.value.item() == pytest.approx(3 * STEP)
    assert not math.isnan(result.value.item())
