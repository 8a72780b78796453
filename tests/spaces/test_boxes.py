"""Boxes: one for all problems, or one of each."""

import torch

from facetwalk.spaces import Box


def test_center_and_radius_of_a_box():
    box = Box(torch.tensor([-1.0, 0.0]), torch.tensor([3.0, 0.5]))
    assert box.center.tolist() == [[1.0, 0.25]]
    assert box.radius.tolist() == [[2.0, 0.25]]
    assert (box.shape, box.count) == ((2,), 1)


def test_a_box_of_each_problem():
    box = Box(torch.tensor([[-1.0], [0.0]]), 2, shape=(3,))
    assert (box.shape, box.count) == ((3,), 2)
    assert box.project(torch.full((2, 3), -9.0)).tolist() == [[-1.0] * 3, [0.0] * 3]
