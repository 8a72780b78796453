import numpy as np
import pytest
import torch

from facetwalk import objectives
from facetwalk.cli.objective_choice import make_objective
from facetwalk.types import InputError

OUTPUTS = torch.tensor([[1.0, 5.0, -2.0, 0.5, 3.0], [0.0, -1.0, 4.0, 2.0, 1.0]])
BOTH = torch.tensor([3, 1])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("output:1", objectives.Output(1)),
        ("-output:2", objectives.Output(2, sign=-1)),
        ("output:-1", objectives.Output(-1)),
        ("margin:3", objectives.Margin(torch.tensor([3]))),
        ("margin:3,1", objectives.Margin(BOTH)),
        ("cross-entropy:3,1", objectives.CrossEntropy(BOTH)),
        ("dlr:3,1", objectives.DLR(BOTH)),
        ("targeted-margin:3,1", objectives.TargetedMargin(BOTH)),
        ("targeted-cross-entropy:3,1", objectives.TargetedCrossEntropy(BOTH)),
        ("targeted-dlr:3,1:0", objectives.TargetedDLR(BOTH, torch.tensor([0]))),
    ],
)
def test_each_name_makes_its_objective(text, expected):
    objective = make_objective(text)
    assert type(objective) is type(expected)
    assert torch.equal(objective(OUTPUTS), expected(OUTPUTS))


def test_labels_come_from_a_file(tmp_path):
    np.save(tmp_path / "labels.npy", BOTH.numpy())
    objective = make_objective(f"margin:{tmp_path / 'labels.npy'}")
    assert torch.equal(objective(OUTPUTS), objectives.Margin(BOTH)(OUTPUTS))


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "no objective is named ''; there are output, -output, margin"),
        ("loss:3", "no objective is named 'loss'"),
        ("output", "needs the number of an output, as in output:0"),
        ("output:x", "needs the number of an output"),
        ("margin", "must have the form margin:LABELS"),
        ("margin:", "must have the form margin:LABELS"),
        ("margin:three", "the labels 'three' must be classes, as in 3 or 3,5,8, or a file"),
        ("margin:no.npy", "there is no file no.npy"),
        ("targeted-dlr:3", "must have the form targeted-dlr:LABELS:TARGETS"),
        ("targeted-dlr:3:1:2", "must have the form targeted-dlr:LABELS:TARGETS"),
        ("targeted-dlr:3:", "must have the form targeted-dlr:LABELS:TARGETS"),
        ("targeted-dlr:3,1:1,2,0", "labels and targets differ in number"),
        ("targeted-dlr:3:3", "a target that is the label itself, where it is 0 everywhere"),
        ("targeted-dlr:3,1:1", "a target that is the label itself"),
    ],
)
def test_what_makes_no_objective_is_refused(text, match):
    with pytest.raises(InputError, match=match):
        make_objective(text)


def test_labels_that_are_not_classes_are_refused(tmp_path):
    np.save(tmp_path / "labels.npy", np.zeros(3))
    with pytest.raises(InputError, match="labels must be class indices"):
        make_objective(f"margin:{tmp_path / 'labels.npy'}")
