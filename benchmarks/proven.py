"""Random networks of Model A whose maximum is proven, and whether our default solver finds it.

Networks `uniform_network(MODEL_A, s)` and the one of the authors' notebook. A network that an
earlier run has proven is not proven again.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from report import RESULTS, earlier, made_by, markdown, origin, write
from torch import nn

import facetwalk as fw
from facetwalk import exact
from facetwalk.objectives import Output
from facetwalk.zoo import MODEL_A, notebook_network, uniform_network

GAP = 0.01
EVALUATIONS = 30_000
SEEDS = range(3)


def networks(count: int) -> dict[str, Callable[[], nn.Module]]:
    """The networks by their names."""
    drawn = {f"Model A, {s}": lambda s=s: uniform_network(MODEL_A, s) for s in range(count)}
    return {**drawn, "notebook, 337550": notebook_network}


def found_by_search(net: nn.Module, space: fw.Box) -> list[float]:
    """What the default solver finds with each seed, in float64 as the network is."""
    problem = fw.Problem(net, Output(0), space)
    return [fw.maximize(problem, evaluations=EVALUATIONS, seed=seed).value.item() for seed in SEEDS]


def entry(name: str, net: nn.Module, seconds: float, device: str) -> dict[str, Any]:
    """All that is known of one network."""
    space = fw.Box(-1, 1, shape=(10,))
    net = net.to(device)
    proof = exact.maximize(net, space, Output(0), gap=GAP, time_limit=seconds, engine="boxes")
    return {
        "network": name,
        "value": proof.value,
        "bound": proof.bound,
        "proven": proof.proven,
        "seconds": proof.seconds,
        "boxes": proof.nodes,
        "x": proof.x.tolist(),
        "found": found_by_search(net, space),
        **origin(device),
    }


def save(entries: list[dict[str, Any]], name: str, folder: Path) -> None:
    headers = ["network", "value", "bound", "proven", "boxes", "seconds", "boxes a second"]
    headers += [f"reached by search, of {len(SEEDS)} seeds", "worst seed"]
    rows = [
        [
            e["network"],
            f"{e['value']:.4f}",
            f"{e['bound']:.4f}",
            "yes" if e["proven"] else "no",
            f"{e['boxes']:,}",
            f"{e['seconds']:.0f}",
            f"{e['boxes'] / e['seconds']:,.0f}",
            sum(value >= e["value"] - GAP for value in e["found"]),
            f"{min(e['found']):.4f}",
        ]
        for e in entries
    ]
    title = f"# Maxima of Model A over [-1, 1]^10, proven to {GAP}"
    note = f"Search: `facetwalk.maximize` with {EVALUATIONS:,} gradients."
    text = f"{title}\n\n{made_by(entries)}\n\n{note}\n\n{markdown(headers, rows)}\n"
    write(name, text, {"results": entries}, folder)
    print(text, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=7200, help="for each network")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    file = "proven" if options.device == "cpu" else f"proven_{options.device}"
    page = options.out / f"{file}.json"
    known = {e["network"]: e for e in earlier([page])} if page.exists() else {}
    for name, make in networks(options.networks).items():
        if not known.get(name, {}).get("proven"):
            known[name] = entry(name, make(), options.seconds, options.device)
            save(sorted(known.values(), key=lambda e: e["network"]), file, options.out)


if __name__ == "__main__":
    main()
