"""A table of networks that `facetwalk train` made, from the records that it wrote beside them."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from report import RESULTS, markdown, write

PAGE = "trained"
HEADERS = [
    "network",
    "clean",
    "robust",
    "under PGD",
    "radius",
    "epochs",
    "seed",
    "minutes",
    "weights",
    "made by",
]
NOTE = (
    "Clean accuracy is that of all 10,000 test images. Robust accuracy (`robustness.evaluate`, 300 "
    "gradients an image) and accuracy under PGD (2 starts of 100 steps) are those of the first "
    "1000. Trainings that ran side by side on one GPU took longer than they would alone. `weights` "
    "is a digest: the same command on the same machine with the same torch gives the same ones."
)


def read(file: Path) -> dict[str, Any]:
    """A record without its history."""
    record = json.loads(file.read_text())
    return {name: value for name, value in record.items() if name != "history"}


def row(record: dict[str, Any]) -> list[object]:
    training, test = record["training"], record["test"]
    radius = training["radius"]
    return [
        training["name"],
        f"{test['clean_accuracy']:.1%}",
        f"{test['robust_accuracy']:.1%}",
        f"{test['pgd_accuracy']:.1%}",
        f"{255 * radius:g}/255" if training["data"] == "cifar10" else f"{radius:g}",
        training["epochs"],
        training["seed"],
        f"{record['seconds'] / 60:.1f}",
        record.get("weights_digest", "-"),
        f"`{record['command']}`",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="+", type=Path, help="where `facetwalk train` wrote to")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    page = options.out / f"{PAGE}.json"
    known = json.loads(page.read_text())["results"] if page.exists() else []
    records = {record["training"]["name"]: record for record in known}
    for folder in options.folder:
        for file in sorted(folder.glob("*.json")):
            record = read(file)
            records[record["training"]["name"]] = record
    chosen = [records[name] for name in sorted(records)]
    machines = sorted({f"{record['machine']}, torch {record['torch']}" for record in chosen})
    text = "\n\n".join(
        [
            "# Trained networks",
            f"On {'; '.join(machines)}.",
            NOTE,
            markdown(HEADERS, [row(record) for record in chosen]),
        ]
    )
    write(PAGE, text + "\n", {"results": chosen}, options.out)
    print(text)


if __name__ == "__main__":
    main()
