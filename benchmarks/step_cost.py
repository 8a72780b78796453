"""What one ADR-GD step costs, in PGD steps of the same run, on networks of the paper's three sizes.

Two forward and two backward passes make 2 the limit. A step's cost is the difference between a
long and a short run; methods take turns, and the ratio is that of medians. Weights do not change
the cost, so VGG19 and Wide ResNet-50-2 are as they start; images are noise. On a CPU the seconds
are those of the processor, which others at work there hardly change.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from report import RESULTS, markdown, save
from torch import nn

import facetwalk as fw
from facetwalk.sites import SiteSelection, discover
from facetwalk.solvers import AdrGd, Sign, Solver
from facetwalk.zoo import MnistCnn, Normalize, SqueezeNet, WideResNet50_2, fresh_net


@dataclass(frozen=True)
class Network:
    name: str
    make: Callable[[], nn.Module]
    shape: tuple[int, int, int]
    eps: float
    experiment: str
    """Whose parameters ADR-GD has."""
    gates: SiteSelection = "all"
    paper: float | None = None
    """The paper's ratio."""


NETWORKS = [
    Network("MNIST CNN", MnistCnn, (1, 28, 28), 0.2, "mnist-untargeted", paper=17.4),
    Network(
        "CIFAR-10 VGG19",
        lambda: fresh_net("cifar-vgg19-plain"),
        (3, 32, 32),
        8 / 255,
        "cifar10-untargeted",
        paper=12.7,
    ),
    Network(
        "SqueezeNet 1.1, gates of the last layer",
        lambda: nn.Sequential(Normalize(), SqueezeNet()),
        (3, 224, 224),
        2 / 255,
        "imagenet-untargeted",
        gates="last",
    ),
    Network(
        "Wide ResNet-50-2, gates of the last block",
        lambda: nn.Sequential(Normalize(), WideResNet50_2()),
        (3, 224, 224),
        2 / 255,
        "imagenet-untargeted",
        gates="1.layer4.2",
        paper=6.3,
    ),
]


class Bench:
    """A network with noise for images, on a device."""

    def __init__(self, network: Network, batch: int, device: str) -> None:
        self.device = device
        generator = torch.Generator().manual_seed(0)
        images = torch.rand(batch, *network.shape, generator=generator).to(device)
        self.model = network.make().to(device).eval()
        labels = (torch.arange(batch) % 10).to(device)
        space = fw.LinfBall(images, network.eps, bounds=(0, 1))
        self.problem = fw.Problem(self.model, fw.objectives.CrossEntropy(labels), space)
        gates = discover(self.model, images[:1]).select(network.gates).neurons
        self.variables = gates + images[0].numel()

    def seconds(self, solver: Solver) -> float:
        clock = time.perf_counter if self.device == "cuda" else time.process_time
        self._wait()
        began = clock()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fw.NotAffineWarning)
            fw.maximize(self.problem, solver=solver)
        self._wait()
        return clock() - began

    def per_step(self, solver: Solver, short: int, long: int) -> float:
        less, more = (self.seconds(replace(solver, steps=steps)) for steps in (short, long))
        return (more - less) / (long - short)

    def _wait(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()


def measure(network: Network, batch: int, options: argparse.Namespace) -> list[dict]:
    if options.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    bench = Bench(network, batch, options.device)
    gates = {"normals": "probed", "sites": network.gates}
    solvers: dict[str, Solver] = {
        "PGD": Sign(),
        "ADR-GD, paper": replace(AdrGd.for_experiment(network.experiment), **gates),
        "ADR-GD, released": replace(
            AdrGd.for_experiment(network.experiment, "released-attack"), **gates
        ),
    }
    times: dict[str, list[float]] = {name: [] for name in solvers}
    for repeat in range(options.repeats + 1):
        for name, solver in solvers.items():
            taken = bench.per_step(solver, *options.steps)
            if repeat:
                times[name].append(taken)
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    peak = torch.cuda.max_memory_allocated() >> 20 if options.device == "cuda" else None
    return [
        {
            "network": network.name,
            "variables": bench.variables,
            "batch": batch,
            "method": name,
            "ratio": median / medians["PGD"],
            "paper": network.paper,
            "seconds_per_step": times[name],
            "MiB": peak,
            "solver": repr(solvers[name]),
        }
        for name, median in medians.items()
    ]


def row(entry: dict) -> list[object]:
    median = statistics.median(entry["seconds_per_step"])
    absolute = entry["MiB"] is not None
    return [
        entry["network"],
        f"{entry['variables']:,}",
        entry["batch"],
        entry["method"],
        f"{entry['ratio']:.2f}",
        entry["paper"] if entry["paper"] and entry["method"] != "PGD" else "-",
        f"{1e3 * median:.2f} ms" if absolute else "-",
        f"{entry['MiB']:,} MiB" if absolute else "-",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", nargs="+", default=[""], help="parts of their names")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batches", nargs="+", type=int, default=[64, 1])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--steps", nargs=2, type=int, default=[50, 150], help="of two runs")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    headers = ["network", "variables", "batch", "method", "PGD steps", "paper", "a step", "peak"]
    found: list[dict] = []
    for network in NETWORKS:
        if any(part in network.name for part in options.networks):
            for batch in options.batches:
                found += measure(network, batch, options)
                title = f"Cost of one step, {options.device}"
                table = markdown(headers, [row(entry) for entry in found])
                save(
                    f"step_cost_{options.device}", title, table, found, options.device, options.out
                )


if __name__ == "__main__":
    main()
