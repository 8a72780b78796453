"""Ideas for the default solver that were tried and not kept, beside it at equal gradients.

On problems that the default was tuned on (`README.md` names them): what does not help even there
need not be tried again.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import torch
from ablation import every
from attacks import SOLVED
from hard_set import Instance
from networks import CASES
from outcome import Target
from report import RESULTS, earlier, made_by, markdown, origin, write
from torch import Tensor
from tried_ideas import Behind, Between, LinearPrograms, Reaching, Tallied

import facetwalk as fw
from facetwalk.experiments.random_networks import SIZES
from facetwalk.objectives import Margin, Output
from facetwalk.solvers import ActivationDescent, Auto, Method, Recombination, Solver
from facetwalk.zoo import StackedNetworks, random_network

DEFAULT = "the default"
Idea = Callable[[Recombination], list[Method]]
"""From the default's plan to methods that follow one another, each from what the last has found."""


def like(method: Any, kind: type, **changes: object) -> Any:
    """A method of another kind with the same settings but for `changes`."""
    known = {each.name: getattr(method, each.name) for each in fields(method)}
    return kind(**{**known, **changes})


def with_kernel(kind: type[ActivationDescent], **changes: float) -> Idea:
    """Another solver in the place of activation descent, where it has a kernel."""

    def of(solver: Solver) -> Solver:
        has = isinstance(solver, ActivationDescent) and solver.width > 0
        return like(solver, kind, **changes) if has else solver

    return lambda plan: [every(plan, of)]


def programs(plan: Recombination) -> list[Method]:
    """All gradients of the last round for linear programs at the best point."""
    last = plan.finish or plan.polish
    assert last is not None
    solver = LinearPrograms()
    steps = max(1, plan.population * last.steps // solver.gradients_per_step)
    first = replace(plan, **{"finish" if plan.finish else "polish": None})  # pyright: ignore
    return [first, replace(solver, steps=steps)]


def behind(plan: Recombination) -> list[Method]:
    """Two gradients fewer for each child, which are what its first place costs."""
    inner = replace(plan.inner, steps=plan.inner.steps - 2)
    return [like(plan, Behind, redrawn=0.0, inner=inner)]


def reaching(plan: Recombination) -> list[Method]:
    """The best of some shares of what the set can do to a neuron."""
    share = 0.025 if plan.finish else 0.15
    return with_kernel(Reaching, width=share)(plan)


IDEAS: dict[str, Idea] = {
    DEFAULT: lambda plan: [plan],
    "a. shortest of two gradients": with_kernel(Between),
    "b. linear programs": programs,
    "c. children behind dead neurons": behind,
    "d. a bandit over losses and steps": lambda plan: [like(plan, Tallied, mixed=False)],
    "e. width in units of radius * norm_1": reaching,
}


def followed(problem: fw.Problem, methods: list[Method], seed: int, stop_at: float | None) -> Any:
    """Values and gradients of methods that follow one another."""
    value, spent, x0 = torch.tensor(-torch.inf), torch.tensor(0), "sample"
    for method in methods:
        found = fw.maximize(problem, solver=method, seed=1_000_003 * seed, x0=x0, stop_at=stop_at)
        at_work = value < (torch.inf if stop_at is None else stop_at)
        spent = spent + found.evaluations.backward * at_work
        value, x0 = torch.maximum(value, found.value), found.x
    return value, spent.double()


def attacked(target: Target, budget: int, idea: Idea, seed: int) -> tuple[Tensor, Tensor]:
    plan = Auto(evaluations=budget).plan(to_the_last_digit=False)
    assert isinstance(plan, Recombination)
    problem = fw.Problem(target.model, Margin(target.labels), target.space)
    return followed(problem, idea(plan), seed, SOLVED)


def images(name: str, count: int) -> Callable[..., dict[str, float]]:
    """Images from number 1000 on of one network."""
    (case,) = (case for case in CASES if case.name == name)

    def measure(budget: int, idea: Idea, seed: int) -> dict[str, float]:
        target = Target.of(case, "cpu", slice(1000, 1000 + count))
        margin, _ = attacked(target, budget, idea, seed)
        solved = 100 * (margin > 0).double().mean().item()
        return {"success, %": solved, "mean of min(margin, 0)": margin.clamp_max(0).mean().item()}

    return measure


def hard(budget: int, idea: Idea, seed: int) -> dict[str, float]:
    """The tuning half of the hard instances on MNIST."""
    known = json.loads((RESULTS / "hard_set.json").read_text())["instances"]
    instances = [Instance(**each) for each in known if each["case"].startswith("mnist")]
    margins, spent = [], []
    for case in CASES:
        some = [i.image for i in instances if i.case == case.name and not i.held_out]
        if some:
            target = Target.of(case, "cpu").select(torch.tensor(some))
            margin, gradients = attacked(target, budget, idea, seed)
            margins.append(margin)
            spent.append(gradients)
    solved = 100 * (torch.cat(margins) > 0).double().mean().item()
    return {"solved, %": solved, "mean gradients": torch.cat(spent).mean().item()}


def random(model: str, count: int) -> Callable[..., dict[str, float]]:
    """Random networks from number 2000 on."""

    def measure(budget: int, idea: Idea, seed: int) -> dict[str, float]:
        inputs = SIZES[model][0]
        stack = [random_network(SIZES[model], 2000 + number) for number in range(count)]
        plan = Auto(evaluations=budget).plan(inputs=inputs)
        assert isinstance(plan, Recombination)
        problem = fw.Problem(StackedNetworks(stack), Output(0), fw.Box(-1, 1, shape=(inputs,)))
        value, _ = followed(problem, idea(plan), seed, stop_at=None)
        return {"mean value": value.mean().item()}

    return measure


WHERE: dict[str, Callable[..., dict[str, float]]] = {
    "mnist_wong_kolter, eps 0.15": images("mnist_wong_kolter, eps 0.15", 300),
    "mnist_cnn_pgd, eps 0.25": images("mnist_cnn_pgd, eps 0.25", 150),
    "hard instances": hard,
    "Model A": random("A", 128),
    "Model C": random("C", 16),
}
BUDGETS = {"hard instances": (3000,)}
USUAL_BUDGETS = (300, 1000)


def table(entries: list[dict[str, Any]]) -> str:
    """The default as it is, and how far each idea is from it with the same seeds."""
    found = {(e["where"], e["budget"], e["idea"]): e["measured"] for e in entries}
    names = [name for name in IDEAS if any(name == idea for _, _, idea in found)]
    rows = []
    for where, budget in [(w, b) for w in WHERE for b in BUDGETS.get(w, USUAL_BUDGETS)]:
        usual = found.get((where, budget, DEFAULT), [])
        for what in usual[0] if usual else []:
            own = [each[what] for each in usual]
            spread = f"{min(own):,.4f} to {max(own):,.4f}; {len(own)}"
            cells = [f"{statistics.mean(own):,.4f} ({spread})"]
            for name in names[1:]:
                others = found.get((where, budget, name), [])
                cells.append(_gap([b[what] - a for a, b in zip(own, others, strict=False)]))
            rows.append([f"{where}, {budget} gradients: {what}", *cells])
    return markdown(["", *names], rows)


def _gap(gaps: list[float]) -> str:
    if not gaps:
        return "-"
    mean, low, high = (round(gap, 9) + 0.0 for gap in (statistics.mean(gaps), min(gaps), max(gaps)))
    return f"{mean:+.3g} ({low:+.3g} to {high:+.3g}; {len(gaps)})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ideas", nargs="*", default=[""], help="names begin with one of these")
    parser.add_argument("--where", nargs="*", default=[""], help="names contain one of these")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--name", default="tried", help="of the files that are written")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument(
        "--add", nargs="*", type=Path, default=[], help="JSON files of runs to put beside this one"
    )
    options = parser.parse_args()
    entries = earlier(options.add)
    for name in (name for name in IDEAS if name.startswith(tuple(options.ideas))):
        for where in (where for where in WHERE if any(part in where for part in options.where)):
            if name.startswith("d.") and where.startswith("Model"):
                continue  # there is one loss alone
            for budget in BUDGETS.get(where, USUAL_BUDGETS):
                measured = [WHERE[where](budget, IDEAS[name], s) for s in range(options.seeds)]
                entry = {"idea": name, "where": where, "budget": budget, "measured": measured}
                entries.append({**entry, **origin("cpu")})
                print(name, where, budget, measured, flush=True)
                page(entries, options)
    print(page(entries, options))


def page(entries: list[dict[str, Any]], options: argparse.Namespace) -> str:
    """What is known so far, which is also written."""
    parts = [
        "# Ideas that were tried, beside the default",
        made_by(entries),
        "The default, mean (lowest to highest; number of seeds), and how much higher each idea is "
        "than the default with the same seed, likewise.",
        table(entries),
    ]
    write(options.name, "\n\n".join(parts) + "\n", {"results": entries}, options.out)
    return parts[-1]


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
