"""Without Stable-Baselines3 one sentence names the extra."""

import subprocess
import sys

BLOCKED = """
import sys
for name in ("stable_baselines3", "gymnasium", "procgen"):
    sys.modules[name] = None
from facetwalk.training.policies.__main__ import main
main(["--out", sys.argv[1]])
"""


def test_a_missing_library_is_said_in_one_sentence(tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", BLOCKED, str(tmp_path / "a.pt")], capture_output=True, text=True
    )
    assert run.returncode == 2
    assert run.stderr == (
        "error: training policies needs an optional dependency: pip install 'facetwalk[control]'\n"
    )
