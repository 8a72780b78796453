"""MNIST networks image by image: attacked, proven robust, or undecided within a time limit.

Linear bounds come first, then an attack by `facetwalk.maximize`, then a mixed-integer program.
Images that an earlier run has decided are not looked at again, nor those that it left undecided
within as much time: where nothing is left, the page is only made again.
"""

from __future__ import annotations

import argparse
import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from networks import CASES, Case
from report import RESULTS, earlier, made_by, markdown, origin, write
from torch import Tensor, nn

import facetwalk as fw
from facetwalk import exact
from facetwalk.objectives import Margin

Known = dict[tuple[str, int], dict[str, Any]]
"""What runs have found, by network and number of the image."""


def cases() -> list[Case]:
    """Wong and Kolter's network at the radius that it was trained for, and one of ours at two."""
    by_name = {case.name: case for case in CASES}
    ours = by_name["mnist-strided-0.3, eps 0.3"]
    return [by_name["mnist_wong_kolter, eps 0.1"], *(replace(ours, eps=eps) for eps in (0.1, 0.2))]


def verdict(net: nn.Module, image: Tensor, label: Tensor, eps: float, seconds: float) -> Any:
    """What is known of one image `(1, 28, 28)`."""
    space = fw.LinfBall(image[None], eps, bounds=(0, 1))
    proof = exact.maximize(
        net, space, Margin(label[None]), threshold=0.0, gap=1e-3, time_limit=seconds, engine="milp"
    )
    decided = "proven" if proof.bound <= 0 else "undecided"
    return {
        "verdict": "attacked" if proof.value > 0 else decided,
        "margin": proof.value,
        "bound": proof.bound,
        "nodes": proof.nodes,
        "seconds": proof.seconds,
        "limit": seconds,
    }


def limit_of(entry: dict[str, Any]) -> float:
    """Seconds for the image; older entries have them in their command alone."""
    return entry.get("limit") or asked(shlex.split(entry["command"])[1:]).seconds


def limits(entries: list[dict[str, Any]]) -> str:
    """The time limits of entries, and how many images had each."""
    counted = sorted(Counter(map(limit_of, entries)).items())
    return ", ".join(f"{limit:g} s: {count}" for limit, count in counted)


def is_settled(entry: dict[str, Any], seconds: float) -> bool:
    """Whether so many seconds would tell nothing new."""
    return entry["verdict"] != "undecided" or limit_of(entry) >= seconds


def save(entries: list[dict[str, Any]], options: argparse.Namespace) -> None:
    headers = ["network", "images", "attacked", "proven robust", "undecided"]
    headers += ["proven without branching", "seconds an image", "images by time limit"]
    rows = []
    for case in dict.fromkeys(e["case"] for e in entries):
        own = [e for e in entries if e["case"] == case]
        counts = [sum(e["verdict"] == v for e in own) for v in ("attacked", "proven", "undecided")]
        plain = sum(e["verdict"] == "proven" and e["nodes"] == 0 for e in own)
        mean = sum(e["seconds"] for e in own) / len(own)
        rows.append([case, len(own), *counts, plain, f"{mean:.1f}", limits(own)])
    title = "# MNIST networks: images attacked, proven robust, undecided"
    note = (
        "An image that is left undecided is tried again by a run with a larger time limit. Seconds "
        "are those of the last attempt."
    )
    text = f"{title}\n\n{made_by(entries)}\n\n{note}\n\n{markdown(headers, rows)}\n"
    write(options.name, text, {"results": entries}, options.out)
    print(text, flush=True)


def asked(words: list[str] | None = None) -> argparse.Namespace:
    """What a command asks for, this one without `words`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="the first image's number")
    parser.add_argument("--images", type=int, default=100)
    parser.add_argument("--networks", nargs="+", default=[""], help="parts of their names")
    parser.add_argument("--name", default="verified", help="of the files that are written")
    parser.add_argument("--seconds", type=float, default=60, help="for each image")
    parser.add_argument("--out", type=Path, default=RESULTS)
    return parser.parse_args(words)


def unsettled(known: Known, options: argparse.Namespace) -> Iterator[tuple[Case, int]]:
    """Networks and numbers of the images that this run looks at."""
    chosen = [case for case in cases() if any(part in case.name for part in options.networks)]
    for number in range(options.first, options.first + options.images):
        for case in chosen:
            entry = known.get((case.name, number))
            if entry is None or not is_settled(entry, options.seconds):
                yield case, number


def main() -> None:
    options = asked()
    page = options.out / f"{options.name}.json"
    known = {(e["case"], e["image"]): e for e in earlier([page])} if page.exists() else {}
    left = list(unsettled(known, options))
    if known and not left:
        save(list(known.values()), options)
    loaded = {case.name: (case.load(), *case.images()) for case in dict(left)}
    for case, number in left:
        net, images, labels = loaded[case.name]
        found = verdict(net, images[number], labels[number], case.eps, options.seconds)
        about = {"case": case.name, "image": number}
        known[case.name, number] = {**about, **found, **origin("cpu")}
        save(list(known.values()), options)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
