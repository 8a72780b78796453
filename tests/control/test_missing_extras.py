"""Without the optional libraries everything else works, and one sentence names the extra."""

import subprocess
import sys

import pytest

BLOCKED = """
import sys
for name in ("stable_baselines3", "gymnasium", "procgen"):
    sys.modules[name] = None
import torch
import facetwalk
import facetwalk.control as control
from facetwalk import MissingExtraError
control.perturbed(torch.nn.Linear(2, 2).eval(), torch.zeros(1, 2), solver=facetwalk.solvers.Fgsm())
try:
    {action}
except MissingExtraError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("action", "extra"),
    [
        ("control.RefinedTD3", "control"),
        ("control.RefinedDDPG", "control"),
        ("control.environments.procgen('fruitbot', 1)", "procgen"),
    ],
)
def test_a_missing_library_is_said_in_one_sentence(action, extra):
    code = BLOCKED.format(action=action)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.endswith(f"needs an optional dependency: pip install 'facetwalk[{extra}]'\n")
    assert run.stdout.count("\n") == 1
