"""Searches may be coarse; what they report is not."""

import pytest
import torch

import facetwalk as fw
from facetwalk.precision import products_in
from facetwalk.zoo import digits, digits_net


def settings():
    return torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32


@pytest.mark.parametrize(
    ("precision", "inside"),
    [("full", ("highest", False)), ("tf32", ("high", True)), ("bf16", ("high", True))],
)
def test_settings_are_as_asked_inside_and_as_before_outside_also_after_an_error(precision, inside):
    before = settings()

    def fail():
        with products_in(precision):
            assert settings() == inside
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert settings() == before


def test_without_a_wish_torch_stays_as_it_is_set():
    before = settings()
    with products_in(None):
        assert settings() == before


class Spy(torch.nn.Module):
    """Notes the type in which a linear layer computes."""

    def __init__(self):
        super().__init__()
        self.linear, self.seen = torch.nn.Linear(4, 3), []

    def forward(self, x):
        y = self.linear(x)
        self.seen.append(y.dtype)
        return torch.relu(y)


def test_bf16_searches_in_bfloat16_and_evaluates_the_result_in_full():
    model = Spy().eval()
    problem = fw.Problem(model, fw.objectives.Output(1), fw.Box(-1, 1, shape=(4,)))
    fw.maximize(problem, solver=fw.solvers.Sign(steps=5), precision="bf16")
    assert set(model.seen[1:-1]) == {torch.bfloat16}
    assert model.seen[-1] == torch.float32
    model.seen.clear()
    fw.maximize(problem, solver=fw.solvers.Sign(steps=5))
    assert set(model.seen) == {torch.float32}


@pytest.mark.parametrize("precision", ["full", "tf32", "bf16"])
def test_values_are_those_of_the_model_itself(precision):
    images, labels = (part[:6] for part in digits("test"))
    model, margin = digits_net(), fw.objectives.Margin(labels)
    problem = fw.Problem(model, margin, fw.LinfBall(images, 0.2, bounds=(0, 1)))
    result = fw.maximize(problem, evaluations=200, precision=precision)
    with torch.no_grad():
        assert torch.equal(result.value, margin(model(result.x)))
    assert result.x.dtype == torch.float32
    assert bool((result.value > result.initial_value).all())


def test_an_unknown_precision_is_refused():
    problem = fw.Problem(Spy().eval(), fw.objectives.Output(1), fw.Box(-1, 1, shape=(4,)))
    with pytest.raises(fw.InputError, match="precision must be one of full, tf32, bf16"):
        fw.maximize(problem, precision="half")
