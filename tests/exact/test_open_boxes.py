import torch

from facetwalk.exact.open_boxes import Boxes, OpenBoxes


def boxes(bounds):
    bound = torch.tensor(bounds, dtype=torch.float64)
    return Boxes(-bound[None], bound[None], torch.arange(len(bounds)), bound)


def test_large_bounds_come_first_and_nothing_is_lost():
    waiting = OpenBoxes(most=100)
    waiting.put(boxes([1.0, 9.0, 3.0, 7.0]))
    waiting.put(boxes([8.0, 2.0]))
    assert waiting.bound() == 9
    first = waiting.pop(2)
    assert sorted(first.bound.tolist()) == [7, 9]
    assert torch.equal(first.low[0], -first.bound)
    assert waiting.bound() == 8
    assert sorted(waiting.pop(100).bound.tolist()) == [1, 2, 3, 8]
    assert waiting.count == 0


def test_beyond_the_limit_the_last_come_first():
    waiting = OpenBoxes(most=2)
    waiting.put(boxes([5.0, 6.0]))
    waiting.put(boxes([1.0, 2.0, 3.0]))
    assert waiting.bound() == 6
    assert waiting.pop(1).bound.tolist() == [1, 2, 3]
    assert waiting.pop(5).bound.tolist() == [6, 5]
