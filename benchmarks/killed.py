"""An evaluation from the command line, once in one go and once killed in the middle and resumed.

Both must report the same of every image. Images of a chunk that was not finished pass through the
network in a smaller batch the second time, which may change the last digits of their margins. Time
and peak memory are those of the first.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from report import RESULTS, data_folder, markdown, save

CHANGING = ("seconds", "peak_mebibytes")
"""What may differ between two reports."""


def command(options: argparse.Namespace, out: Path) -> list[str]:
    arguments = [options.model, "--data", options.data, "--folder", str(data_folder())]
    arguments += ["--eps", options.eps, "--samples", str(options.samples), "--quiet"]
    arguments += ["--budget", str(options.budget), "--device", options.device]
    files = ["--out", str(out), "--json", str(out.with_suffix(".json"))]
    return [sys.executable, "-m", "facetwalk", "evaluate", *arguments, *files]


def report(out: Path) -> dict[str, Any]:
    return json.loads(out.with_suffix(".json").read_text())


def done(out: Path) -> int:
    lines = out / "samples.jsonl"
    return lines.read_bytes().count(b"\n") if lines.exists() else 0


def killed_at(options: argparse.Namespace, out: Path) -> int:
    """Start an evaluation and kill it once a third is done; how many images were."""
    running = subprocess.Popen(command(options, out))
    while done(out) < options.samples // 3 and running.poll() is None:
        time.sleep(0.05)
    running.send_signal(signal.SIGKILL)
    running.wait()
    return done(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="mnist-cnn-0.3")
    parser.add_argument("--data", default="mnist")
    parser.add_argument("--eps", default="0.3")
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--budget", type=int, default=1000)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        whole, parts = Path(folder) / "whole", Path(folder) / "parts"
        subprocess.run(command(options, whole), check=True)
        interrupted = killed_at(options, parts)
        subprocess.run(command(options, parts), check=True)
        one, other = report(whole), report(parts)
    pairs = list(zip(one["samples"], other["samples"], strict=True))
    off = max(abs(a.pop("margin") - b.pop("margin")) for a, b in pairs)
    differ = sum(a != b for a, b in pairs)
    same = all(one[name] == other[name] for name in one.keys() - set(CHANGING))
    rows = [
        ["images", f"{len(one['samples']):,}"],
        ["accuracy", f"{one['accuracy']:.2%}"],
        ["robust accuracy", f"{one['robust_accuracy']:.2%}"],
        ["gradients an image", f"{one['mean_gradients']:.0f}"],
        ["seconds", f"{one['seconds']:.1f}"],
        ["peak GPU memory, MiB", one["peak_mebibytes"] or "-"],
        ["killed after", f"{interrupted:,} images"],
        ["same report, but for margins", "yes" if same else f"no: {differ} images differ"],
        ["largest difference of a margin", f"{off:.1e}"],
    ]
    title = f"`facetwalk evaluate {options.model}`, eps {options.eps}, killed and resumed"
    data = {"whole": _summary(one), "resumed": _summary(other), "killed_after": interrupted}
    data |= {"same": same, "differ": differ, "largest_difference_of_a_margin": off}
    save("killed", title, markdown(["", "value"], rows), data, options.device, options.out)


def _summary(found: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if name != "samples"}


if __name__ == "__main__":
    main()
