"""Without Stable-Baselines3, or with an early one, a sentence says what to install."""

import subprocess
import sys

BLOCKED = """
import sys
for name in ("stable_baselines3", "gymnasium", "procgen"):
    sys.modules[name] = None
from facetwalk.training.policies.__main__ import main
main(["--out", sys.argv[1]])
"""


EARLY = """
import sys
import stable_baselines3
stable_baselines3.__version__ = "2.0.0"
from facetwalk.training.policies.__main__ import main
main(["--out", sys.argv[1]])
"""


def said(code, tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "a.pt")], capture_output=True, text=True
    )
    assert run.returncode == 2
    return run.stderr


def test_a_missing_library_is_said_in_one_sentence(tmp_path):
    assert said(BLOCKED, tmp_path) == (
        "error: training policies needs an optional dependency: pip install 'facetwalk[control]'\n"
    )


def test_an_early_library_is_said_in_one_sentence(tmp_path):
    assert said(EARLY, tmp_path) == (
        "error: Stable-Baselines3 2.0.0 cannot train policies: pip install "
        "'stable-baselines3>=2.3'\n"
    )
