"""Policies for Procgen's images, where it is installed."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch

from facetwalk import InputError
from facetwalk.control import perturbed
from facetwalk.control.environments import as_stepped, procgen
from facetwalk.solvers import Fgsm
from facetwalk.zoo import ImpalaPolicy


@pytest.mark.usefixtures("procgen_is_there")
def test_games_are_seen_with_channels_first_and_attacked():
    torch.manual_seed(0)
    games = as_stepped(procgen("fruitbot", 2, seed=1))
    seen = games.begin(0)
    assert (seen.shape, seen.dtype) == ((2, 3, 64, 64), np.uint8)
    found = perturbed(ImpalaPolicy().eval(), seen, solver=Fgsm())
    after, rewards, over = games.step(found.actions.numpy())
    assert after.shape == seen.shape
    assert not over.any()
    assert rewards.shape == (2,)


@pytest.mark.usefixtures("procgen_is_there")
@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("nogame", 2), "no game is named 'nogame'; there are bigfish, .*coinrun, .*starpilot"),
        ((None, 2), "no game is named None"),
        (("coinrun", 0), "count must be a whole number, at least 1; it is 0"),
        (("coinrun", 2.0), "count must be a whole number, at least 1; it is 2.0"),
        (("coinrun", 2, -1), "levels must be a whole number, at least 0; it is -1"),
        (("coinrun", 2, 2**31), r"levels must be below 2\^31; it is 2147483648"),
        (("coinrun", 2, 10, 0.5), "seed must be a whole number; it is 0.5"),
        (("coinrun", 2, 10, 0, -1), "first must be a whole number, at least 0; it is -1"),
    ],
)
def test_what_would_end_the_interpreter_is_refused(arguments, match):
    with pytest.raises(InputError, match=match):
        procgen(*arguments)


def test_a_missing_library_of_the_system_is_named(monkeypatch):
    def load(**settings):
        raise OSError("cannot load library 'libenv.so': libGL.so.1: cannot open shared object file")

    package = ModuleType("procgen")
    package.env = SimpleNamespace(ENV_NAMES=["coinrun"], ProcgenGym3Env=load)
    monkeypatch.setitem(sys.modules, "procgen", package)
    with pytest.raises(InputError, match=r"cannot be loaded \(OSError: .*libGL.*on Debian libgl1"):
        procgen("coinrun", 1)
