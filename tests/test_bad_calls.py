"""Bad input gets one clear sentence; progress and warnings are as promised."""

import pytest
import torch
from small_classifier import QUICK, batch, classifier
from torch import nn

import facetwalk as fw
from facetwalk.solvers import AdrGd


def good(**changes):
    parts = {
        "model": classifier(),
        "objective": fw.objectives.Margin(torch.tensor([0, 1])),
        "space": fw.LinfBall(torch.zeros(2, 6, dtype=torch.float64), eps=1.0),
    } | changes
    return fw.Problem(**parts)


class Returns(nn.Module):
    def __init__(self, value):
        super().__init__()
        self.value = value

    def forward(self, x):
        return self.value(x)


BAD_CALLS = {
    "no module": (lambda: good(model=torch.relu), fw.InputError, "must be a torch.nn.Module"),
    "no space": (lambda: good(space=(0, 1)), fw.InputError, "the space must be a Box"),
    "no objective": (lambda: good(objective=3), fw.InputError, "must be callable"),
    "counts": (
        lambda: good(objective=fw.objectives.Margin(torch.tensor([0, 1, 2]))),
        fw.InputError,
        "describes 2 problems, the objective 3",
    ),
    "train mode": (
        lambda: fw.maximize(good(model=classifier().train())),
        fw.ModelError,
        r"call model.eval\(\) first",
    ),
    "a part in train mode": (
        lambda: fw.maximize(
            good(
                model=nn.Sequential(classifier(), nn.Dropout()).eval().append(nn.Dropout().train())
            )
        ),
        fw.ModelError,
        "a part of it",
    ),
    "wrong input shape": (
        lambda: fw.maximize(good(space=fw.LinfBall(torch.zeros(2, 5), eps=1.0))),
        fw.ModelError,
        r"fails on an input of shape \(2, 5\)",
    ),
    "labels out of range": (
        lambda: fw.maximize(good(objective=fw.objectives.Margin(torch.tensor([0, 3])))),
        fw.InputError,
        "labels run from 0 to 3, and the model has classes 0 to 2",
    ),
    "output out of range": (
        lambda: fw.maximize(good(objective=fw.objectives.Output(3))),
        fw.InputError,
        "the model has 3 outputs",
    ),
    "tuple of outputs": (
        lambda: fw.maximize(good(model=Returns(lambda x: (x, x)).eval())),
        fw.ModelError,
        "it returned a tuple",
    ),
    "scores of another shape": (
        lambda: fw.maximize(good(objective=lambda y: y)),
        fw.InputError,
        r"one score for each input, shape \(2,\)",
    ),
    "NaN": (
        lambda: fw.maximize(good(model=Returns(lambda x: x[:, :3] / 0).eval())),
        fw.ModelError,
        "NaN at the start",
    ),
    "starts": (
        lambda: fw.maximize(good(), starts=0),
        fw.InputError,
        "starts must be a whole number, at least 1; it is 0",
    ),
    "half a start": (
        lambda: fw.maximize(good(), starts=2.5),
        fw.InputError,
        "starts must be a whole number, at least 1; it is 2.5",
    ),
    "batch size": (
        lambda: fw.maximize(good(), batch_size=0),
        fw.InputError,
        "batch_size must be a whole number, at least 1; it is 0",
    ),
    "no seed": (
        lambda: fw.maximize(good(), seed=None),
        fw.InputError,
        "seed must be a whole number; it is None",
    ),
    "a large seed": (lambda: fw.maximize(good(), seed=2**70), fw.InputError, "within 2.62 of 0"),
    "no end of seconds": (
        lambda: fw.maximize(good(), seconds=float("inf")),
        fw.InputError,
        "seconds must be a positive number; it is inf",
    ),
    "callback": (lambda: fw.maximize(good(), callback=3), fw.InputError, "must be callable"),
    "recordings": (
        lambda: fw.maximize(good(), recordings=3),
        fw.InputError,
        "must be a facetwalk.Recordings",
    ),
    "no problem": (
        lambda: fw.maximize(
            fw.Problem(
                classifier(),
                fw.objectives.Margin(torch.tensor([], dtype=torch.int64)),
                fw.Box(-1, 1, shape=(6,)),
            )
        ),
        fw.InputError,
        "there is no problem to solve",
    ),
    "x0 of another kind": (
        lambda: fw.maximize(good(), x0=[0.0] * 6),
        fw.InputError,
        "x0 must be a tensor, 'center' or 'sample'",
    ),
    "threshold NaN": (
        lambda: fw.maximize(good(), stop_at=float("nan")),
        fw.InputError,
        "stop_at must be a number",
    ),
    "threshold in words": (
        lambda: fw.maximize(good(), stop_at="a"),
        fw.InputError,
        "stop_at must be a number",
    ),
    "no gradient": (
        lambda: fw.maximize(good(objective=lambda y: y.detach().sum(1))),
        fw.ModelError,
        "the objective has no gradient at the inputs",
    ),
    "one row only": (
        lambda: fw.maximize(
            good(
                model=Returns(lambda x: x.reshape(1, 6)[:, :3]).eval(),
                objective=fw.objectives.Output(0),
                space=fw.Box(-1, 1, shape=(6,)),
            )
        ),
        fw.ModelError,
        r"the model fails on an input of shape \(2, 6\)",
    ),
    "half a step": (
        lambda: fw.solvers.Sign(steps=2.5),
        fw.InputError,
        "Sign.steps must be a whole number; it is 2.5",
    ),
    "no step size": (
        lambda: fw.solvers.Sign(step_size=float("nan")),
        fw.InputError,
        "Sign.step_size must be a finite number; it is nan",
    ),
    "x0 word": (lambda: fw.maximize(good(), x0="middle"), fw.InputError, "it is 'middle'"),
    "x0 shape": (
        lambda: fw.maximize(good(), x0=torch.zeros(6)),
        fw.InputError,
        r"pass \(2, 6\) for the first start",
    ),
    "x0 NaN": (
        lambda: fw.maximize(good(), x0=torch.full((2, 6), torch.nan)),
        fw.InputError,
        "x0 holds NaN",
    ),
    "x0 outside": (
        lambda: fw.maximize(good(), x0=torch.tensor([[0.0] * 6, [0.0] * 5 + [1.5]])),
        fw.InputError,
        "1 of 2 starting points lie outside",
    ),
    "thresholds": (
        lambda: fw.maximize(good(), stop_at=torch.zeros(3)),
        fw.InputError,
        "one for each of the 2 problems",
    ),
    "no ReLU": (
        lambda: fw.maximize(good(model=nn.Linear(6, 3).double().eval()), solver=AdrGd(steps=2)),
        fw.ModelError,
        "no ReLU was found",
    ),
}


@pytest.mark.parametrize(("call", "error", "message"), BAD_CALLS.values(), ids=BAD_CALLS)
def test_bad_input_gets_one_clear_sentence(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert isinstance(caught.value, fw.FacetwalkError)
    assert "\n" not in str(caught.value).strip() or "fails on" in str(caught.value)


def test_max_pool_network_warns_once_when_gates_are_used():
    net = nn.Sequential(
        nn.Conv1d(1, 4, 3), nn.ReLU(), nn.MaxPool1d(2), nn.Flatten(), nn.Linear(8, 3), nn.ReLU()
    ).eval()
    space = fw.Box(-3, 3, shape=(1, 6))
    problem = fw.Problem(net, fw.objectives.Output(0), space)
    with pytest.warns(fw.NotAffineWarning, match="not affine before 5#0"):
        fw.maximize(problem, solver=AdrGd(steps=2), starts=4)
    fw.maximize(problem, solver=QUICK, starts=4)


def test_progress_is_plain_lines_without_a_terminal_and_silent_by_default(capsys, monkeypatch):
    monkeypatch.setattr("facetwalk.progress._SECONDS_BETWEEN_LINES", 0.0)
    fw.maximize(batch(), solver=QUICK)
    assert capsys.readouterr() == ("", "")
    fw.maximize(batch(), solver=QUICK, progress=True, batch_size=4)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 40
    assert err.splitlines()[-1] == "Sign: 100% step 20 of 20, 3 rows"
