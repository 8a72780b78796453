"""Policies for Procgen's images, where it is installed."""

import numpy as np
import pytest
import torch

from facetwalk.control import perturbed
from facetwalk.control.environments import as_stepped, procgen
from facetwalk.solvers import Fgsm
from facetwalk.zoo import ImpalaPolicy


def test_games_are_seen_with_channels_first_and_attacked():
    pytest.importorskip("procgen", reason="procgen is not installed")
    torch.manual_seed(0)
    games = as_stepped(procgen("fruitbot", 2, seed=1))
    seen = games.begin(0)
    assert (seen.shape, seen.dtype) == ((2, 3, 64, 64), np.uint8)
    found = perturbed(ImpalaPolicy().eval(), seen, solver=Fgsm())
    after, rewards, over = games.step(found.actions.numpy())
    assert after.shape == seen.shape
    assert not over.any()
    assert rewards.shape == (2,)
