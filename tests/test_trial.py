"""The first look at a problem: what it says of misfits, of memory and of speed."""

from __future__ import annotations

import time

import pytest
import torch
from torch import Tensor, nn

import facetwalk as fw
from facetwalk import trial
from facetwalk.objectives import Margin, Output, as_objective
from facetwalk.solvers import Task
from facetwalk.streams import Streams
from facetwalk.trial import (
    check_scores,
    evaluations_per_second,
    first_outputs,
    has_relus,
    rows_that_fit,
)
from facetwalk.zoo import StackedNetworks, random_network


def look(model: nn.Module, shape=(6,), rows: int = 2, objective=None) -> tuple[Task, Tensor]:
    numbers = torch.arange(rows)
    space = fw.Box(-1, 1, shape=shape)
    objective = as_objective(objective or (lambda y: y.flatten(1).sum(1)))
    task = Task(model.eval(), objective, space, Streams.from_seeds(numbers, numbers))
    return task, space.sample(task.random)


def wide(neurons: int, layers: int = 1) -> nn.Sequential:
    parts: list[nn.Module] = [nn.Linear(6, neurons), nn.ReLU()]
    for _ in range(layers - 1):
        parts += [nn.Linear(neurons, neurons), nn.ReLU()]
    return nn.Sequential(*parts, nn.Linear(neurons, 3))


class TestRowsThatFit:
    def test_the_more_activations_the_fewer_rows(self):
        fits = [rows_that_fit(*look(wide(neurons))) for neurons in (10, 100, 1000, 10_000)]
        assert fits == sorted(fits, reverse=True)
        assert fits[2] > 8 * fits[3]

    def test_the_more_layers_the_fewer_rows(self):
        fits = [rows_that_fit(*look(wide(500, layers))) for layers in (1, 4, 16)]
        assert fits[0] > 2 * fits[1] > 4 * fits[2]

    def test_the_more_inputs_the_fewer_rows(self):
        fits = [rows_that_fit(*look(nn.Flatten(), (n,))) for n in (10, 1000, 100_000)]
        assert fits[0] > 50 * fits[1] > 2500 * fits[2]

    def test_wide_precision_takes_twice_the_room(self):
        single = rows_that_fit(*look(wide(2000)))
        task, x = look(wide(2000).double())
        assert single / rows_that_fit(task, x.double()) == pytest.approx(2, rel=0.05)

    def test_what_they_keep_fits_into_memory(self):
        """At least the hidden layer has to be kept, in single precision."""
        neurons = 5000
        assert rows_that_fit(*look(wide(neurons))) * neurons * 4 < trial._CPU_BYTES

    def test_weights_do_not_count(self):
        """A matrix of 25 million entries, and 5000 activations a row."""
        assert rows_that_fit(*look(wide(5000, layers=2))) > 500

    def test_activations_that_fold_tokens_into_the_batch_count(self):
        class Tokens(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.layer = nn.Linear(8, 64)

            def forward(self, x: Tensor) -> Tensor:
                h = self.layer(x.reshape(-1, 8))
                for _ in range(20):
                    h = torch.sin(h)
                return h.reshape(len(x), -1)

        rows = rows_that_fit(*look(Tokens(), (400, 8)))
        assert rows * 20 * 400 * 64 * 4 < trial._CPU_BYTES

    def test_the_number_of_rows_to_look_at_does_not_matter(self):
        fits = [rows_that_fit(*look(wide(800, 3), rows=rows)) for rows in (1, 2, 8)]
        assert max(fits) <= 1.2 * min(fits)

    def test_there_is_always_room_for_one(self, monkeypatch):
        monkeypatch.setattr(trial, "_CPU_BYTES", 10)
        assert rows_that_fit(*look(wide(1000))) == 1

    def test_it_is_the_batch_size_by_default(self, monkeypatch):
        net, sizes = random_network((6, 50, 1), 0), []
        monkeypatch.setattr(trial, "_CPU_BYTES", 20_000)
        problem = fw.Problem(net, Output(0), fw.Box(-1, 1, shape=(6,)))
        fits = rows_that_fit(*look(net, objective=Output(0)))
        assert 1 < fits < 40
        result = fw.maximize(
            problem,
            solver=fw.solvers.Sign(steps=3),
            starts=100,
            callback=lambda step: sizes.append(len(step.x)),
        )
        assert max(sizes) == fits
        monkeypatch.undo()
        whole = fw.maximize(problem, solver=fw.solvers.Sign(steps=3), starts=100)
        torch.testing.assert_close(result.value, whole.value)


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: wide(5), True),
        (lambda: nn.Sequential(nn.Linear(6, 3), nn.LeakyReLU()), True),
        (lambda: nn.Sequential(nn.Linear(6, 3), nn.Hardtanh()), True),
        (lambda: nn.Linear(6, 3), False),
        (lambda: nn.Sequential(nn.Linear(6, 3), nn.GELU()), False),
        (lambda: torch.jit.script(wide(5).eval()), False),
    ],
    ids=["relu", "leaky", "hardtanh", "linear", "smooth", "TorchScript"],
)
def test_has_relus(make, expected):
    assert has_relus(*look(make())) == expected


def test_relus_of_a_network_for_each_problem_are_seen():
    nets = [random_network((6, 9, 1), seed) for seed in range(2)]
    assert has_relus(*look(StackedNetworks(nets)))


class Returns(nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor):
        return self.function(x)


def failing(x: Tensor) -> Tensor:
    raise RuntimeError("not today")


CASES = {
    "a model that fails": (failing, Output(0), fw.ModelError, r"shape \(2, 6\) .*: not today"),
    "several outputs": (lambda x: (x, x), Output(0), fw.ModelError, "it returned a tuple"),
    "a row too many": (
        lambda x: torch.cat([x, x[:1]]),
        Output(0),
        fw.ModelError,
        r"for 2 inputs it returned a tensor of shape \(3, 6\)",
    ),
    "labels beyond the classes": (
        lambda x: x[:, :3],
        Margin(torch.tensor([0, 3])),
        fw.InputError,
        "labels run from 0 to 3, and the model has classes 0 to 2",
    ),
    "scores of another shape": (
        lambda x: x,
        lambda y: y,
        fw.InputError,
        r"shape \(2,\); it returned a tensor of shape \(2, 6\)",
    ),
    "a number as score": (lambda x: x, lambda y: 3.0, fw.InputError, "it returned a float"),
    "no number": (lambda x: x / 0 - x / 0, Output(0), fw.ModelError, "NaN at the start"),
}


@pytest.mark.parametrize(
    ("function", "objective", "error", "message"), CASES.values(), ids=CASES.keys()
)
def test_what_does_not_fit_is_said_in_words(function, objective, error, message):
    task, x = look(Returns(function), objective=objective)
    with pytest.raises(error, match=message):
        check_scores(task, first_outputs(task, x), task.objective, len(x))


def test_labels_of_all_problems_are_checked():
    task, x = look(Returns(lambda x: x[:, :3]), objective=Margin(torch.tensor([0, 1])))
    with pytest.raises(fw.InputError, match="labels run from 0 to 9"):
        check_scores(task, first_outputs(task, x), Margin(torch.tensor([0, 1, 2, 9])), len(x))


def test_a_function_may_take_any_output():
    task, x = look(Returns(lambda x: {"y": x}), objective=lambda out: out["y"].sum(1))
    scores = check_scores(task, first_outputs(task, x), task.objective, len(x))
    assert torch.equal(scores, x.sum(1))


def test_speed_is_rows_by_seconds():
    def slow(x: Tensor) -> Tensor:
        time.sleep(0.02)
        return x

    few = evaluations_per_second(*look(Returns(slow), rows=2))
    many = evaluations_per_second(*look(Returns(slow), rows=20))
    assert 20 < few <= 100
    assert 5 < many / few < 20
