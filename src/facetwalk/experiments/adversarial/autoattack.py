"""AutoAttack's standard version, where `pyautoattack` is installed."""

from __future__ import annotations

import importlib.util
import time

import torch
from torch import Tensor, nn

from facetwalk.experiments.adversarial.measuring import Found
from facetwalk.experiments.adversarial.victims import Victim
from facetwalk.models import untouched_random_state

_BATCH = 1000
"""It attacks one batch after the other, and small ones take as long as large ones on a GPU."""
NOT_INSTALLED = "AutoAttack is left out: pyautoattack is not installed."


def is_installed() -> bool:
    return importlib.util.find_spec("pyautoattack") is not None


def run_autoattack(victim: Victim, seed: int) -> Found:
    """Untargeted: it has no targets of ours. It decides itself how many gradients it needs, and
    leaves an image once it is fooled; counts are means over the images."""
    from pyautoattack import AutoAttack

    counted, count = _Counted(victim.model), len(victim.images)
    device = victim.images.device
    began = time.perf_counter()
    with untouched_random_state(device):
        attack = AutoAttack(
            counted, norm="Linf", eps=victim.data.eps, device=str(device), seed=seed
        )
        x, _ = attack.run_standard_evaluation(victim.images, victim.labels, batch_size=_BATCH)
    seconds = time.perf_counter() - began
    spent = torch.full((count,), counted.backward_rows / count, dtype=torch.float64)
    forwards = torch.full_like(spent, counted.forward_rows / count)
    return Found(victim.space.project(x), spent, forwards, torch.zeros_like(spent), seconds)


class _Counted(nn.Module):
    """Counts the rows that pass forward, and back."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model.eval()
        self.eval()
        self.forward_rows = self.backward_rows = 0

    def forward(self, x: Tensor) -> Tensor:
        self.forward_rows += len(x)
        logits = self.model(x)
        if logits.requires_grad:
            logits.register_hook(self._count)
        return logits

    def _count(self, gradient: Tensor) -> None:
        self.backward_rows += len(gradient)
