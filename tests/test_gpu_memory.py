"""What counts as free memory of a GPU."""

import pytest
import torch

from facetwalk.gpu_memory import make_room


@pytest.fixture
def gpu(monkeypatch):
    """A GPU of 100 bytes, 60 of them in tensors or in torch's reserve."""
    memory = {"free": 40, "reserved": 60, "allocated": 30}

    def give_back():
        memory["free"] += memory["reserved"] - memory["allocated"]
        memory["reserved"] = memory["allocated"]

    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (memory["free"], 100))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: memory["reserved"])
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: memory["allocated"])
    monkeypatch.setattr(torch.cuda, "empty_cache", give_back)
    return memory


def test_a_small_reserve_is_left_to_torch(gpu):
    assert make_room(torch.device("cuda")) == 40
    assert gpu["reserved"] == 60


def test_a_reserve_that_is_larger_than_what_is_free_is_given_back(gpu):
    gpu["allocated"] = 10
    assert make_room(torch.device("cuda")) == 90
    assert gpu["reserved"] == 10
