"""Bars 5 to 7: what a step costs, how near to the card's limit we run, and how cost grows.

The limit is a bare loop of recorded forward and backward passes of the same network at the same
batch size, which does nothing else. On a CPU there is nothing to record, and the loop is eager.
Activation descent and Sign take the same number of steps in turns; the ratio is that of medians.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import torch
from networks import CASES
from report import RESULTS, markdown, save
from torch import Tensor

import facetwalk as fw
from facetwalk.objectives import Margin
from facetwalk.solvers import ActivationDescent, Auto, Recombination, Sign

LARGEST_JOB = 4_000_000
"""Rows times evaluations, so that no measurement takes minutes."""


class Bench:
    """A network with as many images as asked for."""

    def __init__(self, network: str, device: str) -> None:
        case = next(case for case in CASES if case.network == network)
        self.model, self.device, self.eps = case.load().to(device), device, case.eps
        images, labels = case.images()
        self.images, self.labels = images.to(device), labels.to(device)

    def batch(self, size: int) -> tuple[Tensor, Tensor]:
        rows = torch.arange(size, device=self.device) % len(self.labels)
        return self.images[rows], self.labels[rows]

    def problem(self, size: int) -> fw.Problem:
        images, labels = self.batch(size)
        space = fw.LinfBall(images, self.eps, bounds=(0, 1))
        return fw.Problem(self.model, Margin(labels), space)

    def seconds(self, work: Callable[[], object]) -> float:
        """On a CPU those of the processor, which others at work there hardly change."""
        clock = time.perf_counter if self.device == "cuda" else time.process_time
        self.wait()
        began = clock()
        work()
        self.wait()
        return clock() - began

    def wait(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()

    def bare_pass(self, size: int) -> Callable[[], object]:
        """One forward and backward pass of the margin, recorded where that can be."""
        x, labels = self.batch(size)
        x = x.clone().requires_grad_()
        margin = Margin(labels)

        def once() -> Tensor:
            return torch.autograd.grad(margin(self.model(x)).sum(), x)[0]

        if self.device != "cuda":
            return once
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                once()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kept = once()

        def replay(inputs: tuple[Tensor, ...] = (x, labels, kept)) -> None:
            graph.replay()

        return replay


def step_cost(bench: Bench, sizes: list[int], repeats: int, short: int, long: int) -> list[dict]:
    """Seconds of a step of Sign and of activation descent.

    It is the difference between a short and a long run: what comes once does not count.
    """
    found = []
    for size in sizes:
        problem = bench.problem(size)
        times: dict[str, list[float]] = {"Sign": [], "activation descent": []}
        for repeat in range(repeats + 1):
            for name, kind in (("Sign", Sign), ("activation descent", ActivationDescent)):
                less, more = (
                    bench.seconds(partial(fw.maximize, problem, solver=kind(steps=steps)))
                    for steps in (short, long)
                )
                if repeat:
                    times[name].append((more - less) / (long - short))
        medians = {name: statistics.median(taken) for name, taken in times.items()}
        ratio = medians["activation descent"] / medians["Sign"]
        found.append({"batch": size, "ratio": ratio, **medians})
        print("step", found[-1], flush=True)
    return found


def throughput(bench: Bench, sizes: list[int], budgets: list[int]) -> list[dict]:
    """Evaluations a second of the whole default solver, and of the bare loop at its batch size."""
    found = []
    for budget, largest in product(budgets, sizes):
        if budget * largest > LARGEST_JOB:
            continue
        plan = Auto(evaluations=budget).plan(to_the_last_digit=False)
        count = largest // plan.population
        problem, size = bench.problem(count), count * plan.population
        bare = bench.bare_pass(size)
        bare()
        whole_rates, bare_rates = [], []
        for repeat in range(3):
            taken = bench.seconds(partial(fw.maximize, problem, solver=plan))
            loop = bench.seconds(lambda b=bare, n=plan.steps: [b() for _ in range(n)])
            if repeat:
                whole_rates.append(size * plan.steps / taken)
                bare_rates.append(size * plan.steps / loop)
        whole, limit = statistics.median(whole_rates), statistics.median(bare_rates)
        found.append(
            {
                "evaluations": budget,
                "problems": count,
                "batch": size,
                "ours": whole,
                "bare": limit,
                "share": whole / limit,
            }
        )
        print("throughput", found[-1], flush=True)
    return found


def growth(bench: Bench, counts: list[int], budgets: list[int]) -> list[dict]:
    """Seconds and memory against problems and evaluations, with a population of 5."""
    found = []
    pairs = [(count, budgets[0]) for count in counts] + [(counts[0], b) for b in budgets[1:]]
    bench.seconds(lambda: fw.maximize(bench.problem(counts[0]), evaluations=budgets[0]))
    for count, budget in pairs:
        problem, plan = bench.problem(count), Recombination()
        left = budget // plan.population - plan.first.steps
        plan = replace(plan, generations=1 + left // plan.inner.steps)
        if bench.device == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        taken = bench.seconds(partial(fw.maximize, problem, solver=plan))
        peak = torch.cuda.max_memory_allocated() / 2**20 if bench.device == "cuda" else None
        evaluations = plan.evaluations
        found.append({"problems": count, "evaluations": evaluations, "seconds": taken, "MiB": peak})
        print("growth", found[-1], flush=True)
    return found


def draw(found: list[dict], path: Path) -> None:
    """Seconds and memory against evaluations, and against problems."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    by_budget = [row for row in found if row["problems"] == found[0]["problems"]]
    by_count = [row for row in found if row["evaluations"] == found[0]["evaluations"]]
    for panel, rows, axis in (
        (panels[0], by_budget, "evaluations"),
        (panels[1], by_count, "problems"),
    ):
        panel.plot([r[axis] for r in rows], [r["seconds"] for r in rows], "o-", label="seconds")
        panel.set(xlabel=axis, ylabel="seconds", xlim=(0, None), ylim=(0, None))
        if rows[0]["MiB"] is not None:
            memory = panel.twinx()
            memory.plot([r[axis] for r in rows], [r["MiB"] for r in rows], "s--", color="tab:red")
            memory.set_ylabel("peak memory, MiB", color="tab:red")
            memory.set_ylim(0, 1.2 * max(r["MiB"] for r in rows))
    panels[0].set_title(f"{found[0]['problems']} problems")
    panels[1].set_title(f"{found[0]['evaluations']} evaluations each")
    figure.savefig(path, dpi=150)


def _unit(row: dict) -> float:
    return row["seconds"] / (row["problems"] * row["evaluations"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", default="mnist_cnn_pgd")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batches", nargs="+", type=int, default=[64, 1000])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--steps", nargs=2, type=int, default=[100, 600], help="of two runs")
    parser.add_argument("--rows", nargs="+", type=int, default=[64, 1000, 4000])
    parser.add_argument("--evaluations", nargs="+", type=int, default=[1000, 10000])
    parser.add_argument("--counts", nargs="+", type=int, default=[50, 100, 200, 400, 800])
    parser.add_argument("--budgets", nargs="+", type=int, default=[1000, 2000, 4000, 8000, 16000])
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    bench = Bench(options.network, options.device)
    steps = step_cost(bench, options.batches, options.repeats, *options.steps)
    grown = growth(bench, options.counts, options.budgets)
    rates = throughput(bench, options.rows, options.evaluations)
    absolute = options.device == "cuda"
    tables = [
        "One step of activation descent, in Sign steps of the same run:\n",
        markdown(
            ["batch", "Sign steps", "Sign", "activation descent"],
            [
                [
                    row["batch"],
                    f"{row['ratio']:.2f}",
                    f"{1e3 * row['Sign']:.2f} ms" if absolute else "-",
                    f"{1e3 * row['activation descent']:.2f} ms" if absolute else "-",
                ]
                for row in steps
            ],
        ),
        "\nThe default solver and the bare loop:\n",
        markdown(
            [
                "evaluations",
                "problems",
                "batch",
                "share of the bare loop",
                "ours, evaluations/s",
                "bare",
            ],
            [
                [
                    row["evaluations"],
                    row["problems"],
                    row["batch"],
                    f"{100 * row['share']:.0f} %",
                    f"{row['ours']:,.0f}" if absolute else "-",
                    f"{row['bare']:,.0f}" if absolute else "-",
                ]
                for row in rates
            ],
        ),
        "\nGrowth with evaluations and problems:\n",
        markdown(
            ["problems", "evaluations", "cost per evaluation and problem", "peak memory"],
            [
                [
                    row["problems"],
                    row["evaluations"],
                    f"{_unit(row) / _unit(grown[0]):.2f}",
                    f"{row['MiB']:.0f} MiB" if row["MiB"] else "-",
                ]
                for row in grown
            ],
        ),
    ]
    name = f"speed_{options.device}"
    data = {"steps": steps, "throughput": rates, "growth": grown}
    title = f"Speed on {options.network}, {options.device}"
    save(name, title, "\n".join(tables), data, options.device, options.out)
    draw(grown, options.out / f"{name}.png")


if __name__ == "__main__":
    main()
