"""The field's testbed for maximising a network's output: values, times, and bounds that close.

Sizes, seeds 50 to 54 and inputs in [0, 1]^n are those of Tong et al., 2024 (Optimization over
trained neural networks: taking a relaxing walk); that weights are what `nn.Linear` draws right
after the seed, layer by layer, is our reading. Every method has the same box, best-so-far rule and
number of gradients. What an earlier run has measured is not measured again: where nothing is left,
the page is only made again.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import torch
from report import RESULTS, earlier, made_by, markdown, origin, write
from torch import Tensor, nn

import facetwalk as fw
from facetwalk.experiments.random_networks import Outputs, Run, half_range
from facetwalk.solvers import Adam, AdrGd, Auto, Sign

PAGE = "testbed"
LAYERS, WIDTHS = (1, 2, 3), (100, 500)
NETWORKS = range(50, 55)
"""The seeds of the networks."""
SEEDS = 3
"""Of each method on each network."""
GRADIENTS, RESTART = 3000, 300
GAP = 1e-4
"""A bound so near to the value that was found is closed."""
TIE = 1e-5
"""Values that differ by no more than this are equal."""
SIZE = "inputs, layers x width"


def network(inputs: int, layers: int, width: int, seed: int) -> nn.Sequential:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        sizes = pairwise([inputs, *[width] * layers, 1])
        parts = [part for pair in sizes for part in (nn.Linear(*pair), nn.ReLU())]
    return nn.Sequential(*parts[:-1]).eval()


METHODS = {
    "Sign, restarts": Run(Sign(steps=RESTART), GRADIENTS // RESTART),
    "Adam, restarts": Run(Adam(steps=RESTART), GRADIENTS // RESTART),
    "ADR-GD (released)": Run(
        replace(
            AdrGd.for_experiment("model-c", "released"),
            steps=GRADIENTS // AdrGd.gradients_per_step,
        )
    ),
    "ours": Run(Auto(evaluations=GRADIENTS)),
}
"""ADR-GD has the appendix's parameters for the paper's largest random networks."""


def searched(size: tuple[int, int, int], device: str) -> dict[str, Any]:
    """What each method finds on the networks of one size."""
    nets = [network(*size, seed) for seed in NETWORKS]
    outputs = Outputs.of(nets, SEEDS, device, low=0.0)
    outputs.solve(Run(Sign(steps=20)))  # so that no method pays for the first call
    return {name: outputs.solve(run) for name, run in METHODS.items()}


def proofs(size: tuple[int, int, int], seconds: float, device: str) -> list[dict[str, Any]]:
    """Of each network, the best value and the bound after so many seconds."""
    space, objective = fw.Box(0, 1, shape=size[:1]), fw.objectives.Output(0)
    found = [
        fw.exact.maximize(
            network(*size, seed).to(device), space, objective, time_limit=seconds, gap=GAP
        )
        for seed in NETWORKS
    ]
    return [
        {"value": each.value, "bound": each.bound, "proven": each.proven, "limit": seconds}
        for each in found
    ]


def values_of(entry: dict[str, Any]) -> dict[str, Tensor]:
    """What each method found, `(seeds, networks)`."""
    return {method: torch.tensor(each["values"]) for method, each in entry["found"].items()}


def best_known(entry: dict[str, Any]) -> Tensor:
    """Of all methods, seeds and attempts at a bound, `(networks,)`."""
    best = torch.stack([each.amax(0) for each in values_of(entry).values()]).amax(0)
    if entry["proofs"]:
        best = best.maximum(torch.tensor([each["value"] for each in entry["proofs"]]))
    return best


def share(entry: dict[str, Any], name: str) -> str:
    """Share of the best known, wins, and seconds in those of Sign."""
    values = values_of(entry)
    shares = (100 * values[name].sum(1) / best_known(entry).sum()).tolist()
    means = torch.stack([each.mean(0) for each in values.values()])
    wins = int((values[name].mean(0) >= means.amax(0) - TIE).sum())
    seconds = entry["found"][name]["seconds"] / entry["found"]["Sign, restarts"]["seconds"]
    mean, spread = statistics.mean(shares), half_range(shares)
    return f"{mean:.2f} ± {spread:.2f} %; {wins}; {seconds:.1f}"


def mean_value(entry: dict[str, Any], name: str) -> str:
    """Over networks and seeds."""
    means = values_of(entry)[name].mean(1).tolist()
    return f"{statistics.mean(means):.4f} ± {half_range(means):.4f}"


def seconds_of(entry: dict[str, Any], name: str) -> str:
    """Of all networks and seeds, side by side."""
    return f"{entry['found'][name]['seconds']:.2f}"


def mean_bound(entry: dict[str, Any]) -> str:
    """Over networks; those that did not close are open."""
    if not entry["proofs"]:
        return "-"
    still_open = sum(not each["proven"] for each in entry["proofs"])
    mean = statistics.mean(each["bound"] for each in entry["proofs"])
    return f"{mean:.4f}" + (f", {still_open} open" if still_open else "")


def closed(entry: dict[str, Any]) -> list[str]:
    """How many bounds closed, and how far ours lies below them at most."""
    if not entry["proofs"]:
        return ["-", "-"]
    worst = [min(values) for values in zip(*entry["found"]["ours"]["values"], strict=True)]
    gaps = [
        each["bound"] - value
        for each, value in zip(entry["proofs"], worst, strict=True)
        if each["proven"]
    ]
    limit = entry["proofs"][0]["limit"]
    return [f"{len(gaps)} of {len(worst)} in {limit:g} s", f"{max(gaps):.5f}" if gaps else "-"]


def shares_table(entries: list[dict[str, Any]]) -> list[str]:
    headers = [SIZE, *METHODS, "bounds closed", "ours below them, at most"]
    rows = [[e["name"], *(share(e, name) for name in METHODS), *closed(e)] for e in entries]
    note = (
        "A cell: the sum of values over that of the best values known, mean of seeds ± half "
        f"their range; networks on which no mean is more than {TIE:g} higher; seconds, in those of "
        "Sign. The best known is the best of all methods, seeds and attempts at a bound, which "
        f"proves nothing where the bound is not closed, {GAP:g} above a value that was found."
    )
    return ["## Shares", note, markdown(headers, rows)]


def values_table(entries: list[dict[str, Any]]) -> list[str]:
    headers = [SIZE, *METHODS, "best known", "bound"]
    rows = [
        [
            e["name"],
            *(mean_value(e, name) for name in METHODS),
            f"{best_known(e).mean():.4f}",
            mean_bound(e),
        ]
        for e in entries
    ]
    note = (
        "Means over networks and seeds ± half the range of the seeds' means; bounds are those that "
        "stood when the time was over."
    )
    return ["## Values", note, markdown(headers, rows)]


def seconds_table(entries: list[dict[str, Any]]) -> list[str]:
    rows = [[e["name"], *(seconds_of(e, name) for name in METHODS)] for e in entries]
    note = f"Of all {len(NETWORKS) * SEEDS} runs of a method on one size, side by side."
    return ["## Seconds", note, markdown([SIZE, *METHODS], rows)]


def closed_table(entries: list[dict[str, Any]]) -> list[str]:
    """Networks whose bound has closed, and the mean of each method's seeds there."""
    rows = [
        [
            f"{e['name']}, seed {NETWORKS[number]}",
            *(f"{values[:, number].mean():.5f}" for values in values_of(e).values()),
            f"{proof['value']:.5f}",
            f"{proof['bound']:.5f}",
        ]
        for e in entries
        for number, proof in enumerate(e["proofs"])
        if proof["proven"]
    ]
    headers = [SIZE, *METHODS, "found with the bound", "bound"]
    note = "Means of the seeds."
    return ["## Networks whose bound is closed", note, markdown(headers, rows)] if rows else []


def save(entries: list[dict[str, Any]], folder: Path) -> None:
    parts = [
        "# Maxima of networks with torch's initialisation over [0, 1]^n",
        made_by(entries),
        f"{len(NETWORKS)} networks of each size, {SEEDS} seeds of each method, "
        f"{GRADIENTS:,} gradients; ADR-GD and ours measure normals by forward passes on top.",
        *shares_table(entries),
        *values_table(entries),
        *seconds_table(entries),
        *closed_table(entries),
    ]
    text = "\n\n".join(parts) + "\n"
    write(PAGE, text, {"results": entries}, folder)
    print(text, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", nargs="+", type=int, default=[10, 100, 1000])
    parser.add_argument("--seconds", type=float, default=60, help="for each bound; 0 for none")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    page = options.out / f"{PAGE}.json"
    known = {e["name"]: e for e in earlier([page])} if page.exists() else {}
    if known:
        save(list(known.values()), options.out)
    for inputs, layers, width in product(options.inputs, LAYERS, WIDTHS):
        name, size = f"{inputs}, {layers} x {width}", (inputs, layers, width)
        if name not in known:
            found = searched(size, options.device)
            known[name] = {"name": name, "found": found, "proofs": [], **origin(options.device)}
            save(list(known.values()), options.out)
        if options.seconds and not known[name]["proofs"]:
            known[name]["proofs"] = proofs(size, options.seconds, options.device)
            save(list(known.values()), options.out)


if __name__ == "__main__":
    main()
