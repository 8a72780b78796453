"""Models and objectives that are not the usual ones, and what is made of them."""

import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import facetwalk as fw
from facetwalk.objectives import Distance, Linear, Margin, Output
from facetwalk.solvers import Adagrad, Adam, AdrGd, RmsProp, Sign

BOX = fw.Box(-1, 1, shape=(3,))


def network(outputs: int = 4, inputs: int = 3) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(inputs, 32), nn.ReLU(), nn.Linear(32, outputs)).eval()


class Followed(nn.Module):
    """A network whose outputs another function changes."""

    def __init__(self, function: Any, outputs: int = 4) -> None:
        super().__init__()
        self.network, self.function = network(outputs), function
        self.eval()

    def forward(self, x: Tensor) -> Any:
        return self.function(self.network(x))


def best(model: nn.Module, objective: Any, **options: Any) -> fw.Result:
    return fw.maximize(fw.Problem(model, objective, BOX), **{"evaluations": 200, **options})


class TestPrecisionOfScores:
    """The model's weights and its outputs need not have the same."""

    @pytest.mark.parametrize("solver", [None, Sign(steps=20), Adam(steps=20), AdrGd(steps=20)])
    def test_logits_in_single_precision_of_weights_in_half(self, solver):
        model = nn.Sequential(network().bfloat16(), InFloat32()).eval()
        options = {"evaluations": None, "solver": solver} if solver else {}
        found = best(model, Margin(torch.tensor([0])), **options)
        assert found.value.dtype == torch.float32
        assert found.value.item() >= found.initial_value.item()
        assert found.value.item() == Margin(torch.tensor([0]))(model(found.x)).item()

    def test_scores_in_double_precision(self):
        model = network()
        found = best(model, lambda y: y.double().sum(1))
        assert found.value.dtype == torch.float64
        assert found.value.item() == pytest.approx(best(model, lambda y: y.sum(1)).value.item())

    def test_a_specification_follows_the_outputs(self):
        model = Followed(Tensor.double)
        specification = Linear(torch.ones(1, 1, 4), torch.zeros(1, 1))
        found = best(model, specification)
        assert found.value.item() == pytest.approx(model(found.x).sum().item())


class InFloat32(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.float()


@pytest.mark.parametrize("solver", [Adam(steps=50), Adagrad(steps=50), RmsProp(steps=50)])
def test_steps_of_a_model_in_half_precision_are_those_of_single(solver):
    """Squares of gradients, and what keeps from dividing by zero, vanish in 16 bits."""
    model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1)).eval()
    model[0].weight.data[:, 2] = 0  # an input without a gradient
    options = {"evaluations": None, "solver": solver}
    half = best(nn.Sequential(*model).half().eval(), Output(0), **options)
    single = best(nn.Sequential(*model).float().eval(), Output(0), **options)
    assert half.value.item() == pytest.approx(single.value.item(), abs=0.01)
    assert half.value.item() > half.initial_value.item()


class TestOutputs:
    @pytest.mark.parametrize(
        ("objective", "of_columns"),
        [
            (Output(0), Output(0)),
            (Distance(torch.zeros(1)), Distance(torch.zeros(1, 1))),
            (Linear(torch.ones(1, 1, 1), torch.ones(1, 1)),) * 2,
        ],
        ids=["output", "distance", "linear"],
    )
    def test_one_number_for_each_input(self, objective, of_columns):
        flat = best(Followed(lambda y: y.squeeze(-1), outputs=1), objective)
        assert flat.value.item() == pytest.approx(best(network(1), of_columns).value.item())

    def test_a_dictionary_of_a_kind_of_its_own(self):
        class Named(OrderedDict):
            @property
            def logits(self) -> Tensor:
                return self["logits"]

        model = Followed(lambda y: Named(logits=y))
        plain = best(network(), Output(0)).value.item()
        for options in ({}, {"precision": "bf16"}):
            found = best(model, lambda out: out.logits[:, 0], **options)
            assert found.value.item() == pytest.approx(plain, abs=0.02)
        adr_gd = {"evaluations": None, "solver": AdrGd(steps=20)}
        assert best(model, lambda out: out.logits[:, 0], **adr_gd).value.isfinite().all()

    def test_an_objective_that_is_a_dataclass_keeps_its_tensors(self):
        @dataclass
        class SumOf:
            classes: Tensor

            def __call__(self, outputs: Tensor) -> Tensor:
                return outputs[:, self.classes].sum(1)

        objective, model = SumOf(torch.tensor([3, 1])), network()
        problem = fw.Problem(model, objective, fw.Box(-1, torch.ones(5, 3), shape=(3,)))
        found = fw.maximize(problem, evaluations=50, batch_size=4)
        assert torch.allclose(found.value, objective(model(found.x)))
        assert objective.classes.tolist() == [3, 1]


class TestGuards:
    """A bound far from all values is no hinge: as one it would cost all digits."""

    @pytest.mark.parametrize(
        "guard",
        [
            lambda y: torch.max(y, torch.tensor(torch.finfo(y.dtype).min)),
            lambda y: torch.maximum(y, torch.full_like(y, -torch.inf)),
            lambda y: torch.minimum(torch.tensor(1e9), y),
            lambda y: y.clamp(min=torch.tensor(-1e9)),
            lambda y: y.clamp(torch.tensor(-torch.inf), torch.tensor([1e9, 1e9, 1e9, 1e9])),
        ],
    )
    def test_values_and_gradients_are_those_without(self, guard):
        guarded, plain = best(Followed(guard), Output(0)), best(network(), Output(0))
        assert guarded.initial_value.item() == plain.initial_value.item()
        assert guarded.value.item() == pytest.approx(plain.value.item(), abs=1e-6)

    def test_a_bound_may_guard_some_entries_and_bend_others(self):
        bound = torch.tensor([-torch.inf, 0.0, -1e9, 0.5])
        model = Followed(lambda y: torch.maximum(y, bound))
        sites = fw.sites.discover(model, torch.zeros(1, 3))
        x = torch.randn(20, 3)
        assert torch.equal(sites.pre_activations(x)[0], model(x))
        assert best(model, lambda y: y.sum(1)).value.isfinite().all()

    def test_what_still_rounds_is_refused_where_relus_are_asked_for(self):
        model = Followed(lambda y: nn.functional.hardtanh(1e-3 * y, -999.0, 999.0))
        with pytest.raises(fw.ModelError, match="with its ReLUs written out the model gives other"):
            fw.sites.discover(model, torch.zeros(1, 3))
        found = best(model, Output(0))  # by sign ascent
        assert found.value.item() == model(found.x)[0, 0].item() > found.initial_value.item()


class TestWithoutDerivatives:
    def test_a_recurrent_network(self):
        """Torch knows no forward-mode derivatives of it."""
        torch.manual_seed(0)

        class Recurrent(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.rnn, self.head = nn.LSTM(3, 8, batch_first=True), network(2, 8)

            def forward(self, x: Tensor) -> Tensor:
                return self.head(self.rnn(x)[0][:, -1])

        space = fw.Box(-1, 1, shape=(4, 3))
        with pytest.warns(fw.NotAffineWarning):
            found = fw.maximize(
                fw.Problem(Recurrent().eval(), Output(0), space), solver=AdrGd(steps=20)
            )
        by_default = fw.maximize(fw.Problem(Recurrent().eval(), Output(0), space), evaluations=60)
        assert found.value.isfinite().all()
        assert by_default.value.item() > by_default.initial_value.item()

    def test_inference_mode_around_the_call(self):
        model, labels, images = network(), torch.tensor([0, 1]), torch.rand(2, 3)

        def found() -> Tensor:
            space = fw.LinfBall(images.clone(), 0.1)
            problem = fw.Problem(model, Margin(labels.clone()), space)
            return fw.maximize(problem, evaluations=60).value

        with torch.inference_mode():
            inside = found()
        assert torch.equal(inside, found())

    def test_weights_of_inference_mode(self):
        with torch.inference_mode():
            model = network()
        with pytest.raises(fw.ModelError, match="made in inference mode"):
            best(model, Output(0))


def test_an_objective_that_changes_is_seen_by_later_calls():
    """What was recorded claims the values of the objective as it was."""

    class Wanted:
        output = 0

        def __call__(self, outputs: Tensor) -> Tensor:
            return outputs[:, self.output]

    wanted, model, recordings = Wanted(), network(3), fw.Recordings()
    for wanted.output in (0, 0, 1, 1, 2, 2):
        recorded = best(model, wanted, recordings=recordings)
        assert recorded.value.item() == pytest.approx(best(model, wanted).value.item(), abs=1e-5)


def test_a_slow_model_does_not_spend_the_time_on_a_first_look():
    """Both have some passes' time; to look for ReLUs and to measure speed would take twenty."""

    class Slow(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network, self.passes = network(), 0

        def forward(self, x: Tensor) -> Tensor:
            self.passes += 1
            time.sleep(0.05)
            return self.network(x)

    model = Slow().eval()
    found = best(model, Output(0), evaluations=None, seconds=0.3)
    assert found.evaluations.backward.item() >= 2
    assert model.passes <= 12
