"""MNIST networks: what optimised slopes are worth to linear bounds, without any branching.

The bound on the margin of each image by plain slopes, with the goals' slopes optimised, and with
those of the neurons too. An image is proven robust where it is not above 0.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from networks import CASES, Case
from report import RESULTS, markdown, save
from torch import Tensor, nn

from facetwalk.exact.backward_bounds import Bounds, backward_bounds
from facetwalk.exact.goals import Goals
from facetwalk.exact.graph import Graph
from facetwalk.exact.proof import Search
from facetwalk.exact.tightening import tighten_goals, tighten_neurons
from facetwalk.objectives import Margin

STAGES = ("plain", "goals", "neurons")
RADII = {"mnist_wong_kolter": (0.1, 0.12, 0.13, 0.15), "mnist-strided-0.3": (0.1, 0.2, 0.25, 0.3)}


def cases() -> list[Case]:
    """Wong and Kolter's network and one of ours, each at several radii."""
    by_network = {case.network: case for case in CASES}
    return [replace(by_network[name], eps=eps) for name, radii in RADII.items() for eps in radii]


def to_the_end(bounds: Bounds) -> Search:
    """A search that aims for nothing, so that no stage ends before its time."""
    now = time.perf_counter()
    return Search(
        x=torch.zeros(0),
        value=-math.inf,
        bound=bounds.outputs.max().item(),
        gap=1.0,
        threshold=None,
        evaluate=lambda points: points,
        began=now,
        deadline=now + 3600,
        report=lambda *_: None,
    )


def entry(net: nn.Module, image: Tensor, label: Tensor, eps: float) -> dict[str, Any]:
    """Bound, unstable neurons and seconds of one image `(1, 28, 28)` after each stage."""
    graph = Graph.of(Goals(net, Margin(label[None])), tuple(image.shape))
    center = image.double().flatten()
    low, high = (center - eps).clamp(0, 1), (center + eps).clamp(0, 1)
    times = [time.perf_counter()]
    found = [backward_bounds(graph, low, high)]
    search = to_the_end(found[0])
    for stage in (tighten_goals, tighten_neurons):
        times.append(time.perf_counter())
        found.append(stage(graph, low, high, found[-1], search))
    times.append(time.perf_counter())
    return {
        "bound": [bounds.outputs.max().item() for bounds in found],
        "unstable": [bounds.unstable for bounds in found],
        "seconds": [end - start for start, end in pairwise(times)],
    }


def row(case: Case, entries: list[dict[str, Any]]) -> list[object]:
    """The stages side by side, over all images."""

    def each(key: str, form: str) -> str:
        columns = zip(*(e[key] for e in entries), strict=True)
        return " / ".join(format(sum(column) / len(entries), form) for column in columns)

    proven = [sum(e["bound"][i] <= 0 for e in entries) for i in range(len(STAGES))]
    counts = " / ".join(map(str, proven))
    columns = each("bound", ".2f"), each("unstable", ".0f"), each("seconds", ".2f")
    return [case.name, len(entries), counts, *columns]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="the first image's number")
    parser.add_argument("--images", type=int, default=20)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    numbers = range(options.first, options.first + options.images)
    stages = " / ".join(STAGES)
    headers = ["network", "images", f"proven: {stages}", "mean bound", "unstable neurons"]
    headers.append("seconds of each stage")
    rows, data = [], []
    for case in cases():
        net, (images, labels) = case.load(), case.images()
        entries = [entry(net, images[i], labels[i], case.eps) for i in numbers]
        rows.append(row(case, entries))
        pairs = zip(numbers, entries, strict=True)
        data += [{"case": case.name, "image": i, **e} for i, e in pairs]
        title = "Linear bounds of MNIST networks, plain and with optimised slopes"
        save("slopes", title, markdown(headers, rows), data, "cpu", options.out)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
