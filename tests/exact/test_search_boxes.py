"""How many boxes are bounded at once."""

import torch

from facetwalk.exact import boxes


def test_a_gpu_with_little_memory_gets_fewer_boxes_at_once(monkeypatch):
    free = {"bytes": 100 * 2**30}
    monkeypatch.setattr(boxes, "make_room", lambda device: free["bytes"])
    gpu = torch.device("cuda")
    assert boxes._numbers_at_once(gpu) == 2**27
    free["bytes"] = 8 * 2**30
    assert boxes._numbers_at_once(gpu) == 2**24
    assert boxes._numbers_at_once(torch.device("cpu")) == 2**19
