import pytest
import torch
from classifiers import Calls, Counting, batch, linear

from facetwalk.objectives import Margin
from facetwalk.robustness.rechecking import fooled_alone, margins


@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_margins_are_those_of_each_row(batch_size):
    net = linear()
    images, labels = batch(net, 10, wrong=4)
    found = margins(net, images, Margin(labels), batch_size)
    logits = net(images).detach()
    for b, (row, label) in enumerate(zip(logits.tolist(), labels.tolist(), strict=True)):
        others = max(value for c, value in enumerate(row) if c != label)
        assert found[b].item() == pytest.approx(others - row[label])


def test_only_rows_in_question_pass_and_one_by_one():
    net = Counting(linear())
    images, labels = batch(net.net, 10, wrong=6)
    asked = torch.tensor([True, False] * 5)
    alone = fooled_alone(net, images, Margin(labels), asked)
    assert alone.tolist() == [True, False, True, False, True] + [False] * 5
    assert torch.equal(torch.cat(net.passes), images[asked])
    assert {len(x) for x in net.passes} == {1}


def test_a_batch_is_not_believed():
    net = Calls(linear(), lambda net, x: net(x).roll(1, 1) if len(x) > 1 else net(x))
    images, labels = batch(linear(), 10)
    together = margins(net, images, Margin(labels), 10) > 0
    assert together.all()
    assert not fooled_alone(net, images, Margin(labels), together).any()


def test_nothing_in_question_is_no_pass():
    net = Counting(linear())
    images, labels = batch(net.net, 4)
    assert not fooled_alone(net, images, Margin(labels), torch.zeros(4).bool()).any()
    assert net.passes == []
