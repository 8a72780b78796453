"""How much memory a GPU has left."""

from __future__ import annotations

import torch


def make_room(device: torch.device) -> int:
    """The bytes that are free on a GPU, after torch's reserve has been given back if it is larger.

    torch keeps what is no longer used for tensors to come. A recording cannot take from there, and
    whoever asks the driver how much is free does not see it.
    """
    free, _ = torch.cuda.mem_get_info(device)
    reserve = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    if reserve <= free:
        return free
    torch.cuda.empty_cache()
    return torch.cuda.mem_get_info(device)[0]
