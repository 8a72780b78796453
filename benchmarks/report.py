"""What the benchmarks share: where data lies, what machine this is, how results are written."""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).parent
RESULTS = HERE / "results"


def data_folder() -> Path:
    """Where real networks and images lie: `FACETWALK_DATA`, or `../shared/data`."""
    return Path(os.environ.get("FACETWALK_DATA", HERE.parent.parent / "shared" / "data"))


def machine(device: str) -> str:
    """What the numbers were measured on."""
    name = torch.cuda.get_device_name() if device == "cuda" else platform.machine()
    threads = "" if device == "cuda" else f", {torch.get_num_threads()} threads"
    return f"{name}{threads}, torch {torch.__version__}"


def markdown(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table; numbers are right-aligned by their column's rule."""
    lines = ["| " + " | ".join(headers) + " |", "|---|" + "--:|" * (len(headers) - 1)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def save(name: str, title: str, table: str, data: Any, device: str, folder: Path) -> None:
    """Print the table, and write it and the data behind it to `folder`."""
    command = shlex.join(["python", *sys.argv])
    text = f"# {title}\n\nMade by `{command}` on {machine(device)}.\n\n{table}\n"
    print(text, flush=True)
    payload = {"command": command, "machine": machine(device), "results": data}
    write(name, text, payload, folder)


def write(name: str, text: str, payload: Any, folder: Path) -> None:
    """Write a page in Markdown and the data behind it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(text)
    (folder / f"{name}.json").write_text(json.dumps(payload, indent=1) + "\n")


def origin(device: str) -> dict[str, str]:
    """Where an entry comes from, of a page that holds those of several runs."""
    return {"machine": machine(device), "command": shlex.join(sys.argv)}


def made_by(entries: Sequence[dict[str, Any]]) -> str:
    """What to say of entries that have an `origin`."""
    lines = sorted({f"- `python {e['command']}` on {e['machine']}" for e in entries})
    return "Made by\n\n" + "\n".join(lines)


def earlier(files: Sequence[Path]) -> list[dict[str, Any]]:
    """The entries of pages that earlier runs wrote."""
    return [entry for file in files for entry in json.loads(file.read_text())["results"]]
