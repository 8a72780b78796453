"""What each part of the default solver is worth, and how wide its kernel should be.

One part at a time is taken out, or one setting changed, at equal gradients. MNIST and CIFAR-10
images are those from number 1000 on, which `classifiers.py` does not use. The digits are too few
for that: there both see the same images. `README.md` says what the settings were tuned on.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from attacks import SOLVED
from networks import BY_NORM, Case
from outcome import Target
from random_networks import SIZES
from report import RESULTS, markdown, save
from torch import Tensor

import facetwalk as fw
from facetwalk.objectives import CrossEntropy, Guided, Margin
from facetwalk.solvers import ActivationDescent, Auto, Method, Recombination, Sign, Solver, Task
from facetwalk.solvers.recombination import Elites
from facetwalk.spaces import BALLS
from facetwalk.zoo import StackedNetworks, random_network

Change = Callable[[Recombination], Method]

MORE_ENTROPY = "every other loss the cross-entropy"
REACHED = 1e-5
"""A share of the best value that counts as nothing."""


@dataclass(frozen=True, kw_only=True)
class Unnormalised(ActivationDescent):
    """Activation descent that knows how far a layer's hyperplanes are on average, no more."""

    def _norms(self, task: Task, x: Tensor, t: int) -> list[Tensor]:
        norms = super()._norms(task, x, t)
        return [norm.mean().expand_as(norm).contiguous() for norm in norms]


@dataclass(frozen=True, kw_only=True)
class Clones(Recombination):
    """Children have one parent."""

    def _children(self, task: Task, elites: Elites, number: int) -> Tensor:
        one = Elites(elites.x[:, :1].expand_as(elites.x), elites.value)
        return super()._children(task, one, number)


def every(plan: Recombination, change: Callable[[Solver], Solver]) -> Recombination:
    """The plan with all its solvers changed."""
    return replace(
        plan,
        first=change(plan.first),
        inner=change(plan.inner),
        polish=plan.polish and change(plan.polish),
    )


def inner(plan: Recombination, **changes: object) -> Recombination:
    """The plan with other settings of those solvers that have them."""

    def changed(solver: Solver) -> Solver:
        known = all(hasattr(solver, name) for name in changes)
        return replace(solver, **changes) if known else solver  # pyright: ignore

    return every(plan, changed)


def with_solver(plan: Recombination, kind: type[Sign]) -> Recombination:
    """The plan with another solver in the place of activation descent, where it has a kernel."""

    def of(solver: Solver) -> Solver:
        if not isinstance(solver, ActivationDescent) or not solver.width:
            return solver
        size, momentum = solver.step_size, solver.momentum
        return kind(steps=solver.steps, step_size=size, momentum=momentum)

    return every(plan, of)


def from_random_points(plan: Recombination, steps: int) -> Solver:
    """What improves children, with the long steps of the first generation."""
    assert isinstance(plan.first, Sign)
    return replace(plan.inner, steps=steps, step_size=plan.first.step_size)  # pyright: ignore


def restarts(plan: Recombination) -> Recombination:
    """The same evaluations without learning: every generation starts anew."""
    rounds = plan.epochs * plan.generations
    first = from_random_points(plan, plan.inner.steps)
    return replace(plan, epochs=rounds, generations=1, first=first)


def one_epoch(plan: Recombination) -> Recombination:
    return replace(plan, epochs=1, generations=plan.epochs * plan.generations)


def clones(plan: Recombination) -> Clones:
    return Clones(**{name: getattr(plan, name) for name in plan.__dataclass_fields__})


PARTS: dict[str, Change] = {
    "everything": lambda plan: plan,
    "no kernel: exact gradients": lambda plan: with_solver(plan, Sign),
    "no normalisation by normals": lambda plan: with_solver(plan, Unnormalised),
    "kernel in the first generation too": lambda plan: replace(
        plan, first=from_random_points(plan, plan.first.steps)
    ),
    "no kernel in the first generation": lambda plan: replace(
        plan,
        first=replace(plan.first, width=0.0),  # pyright: ignore
    ),
    "no annealing: kernel to the end": lambda plan: inner(plan, annealing=1.0),
    "no momentum": lambda plan: inner(plan, momentum=0.0),
    "no recombination: restarts": restarts,
    "no crossover: clones of the best": clones,
    "no other losses": lambda plan: replace(plan, mixed=False),
    MORE_ENTROPY: lambda plan: plan,
    "nothing redrawn": lambda plan: replace(plan, redrawn=0.0),
    "one epoch": one_epoch,
    "no polish, no finish": lambda plan: _with_last(plan, None, None),
    "no polish": lambda plan: _with_last(plan, None, plan.finish),
    "no finish": lambda plan: _with_last(plan, plan.polish, None),
}

SETTINGS: dict[str, Change] = {
    **{
        f"width {width:g}": lambda plan, w=width: inner(plan, width=w)
        for width in (0.0015, 0.004, 0.0075, 0.015, 0.03, 0.06)
    },
    **{
        f"annealing {share:g}": lambda plan, a=share: inner(plan, annealing=a)
        for share in (0.15, 0.3, 0.5)
    },
    **{
        f"first step of children {size:g}": lambda plan, s=size: replace(
            plan,
            inner=replace(plan.inner, step_size=s),  # pyright: ignore
        )
        for size in (0.25, 0.5, 1.0)
    },
    **{
        f"first step of the polish {size:g}": lambda plan, s=size: _polished(plan, step_size=s)
        for size in (0.1, 0.2, 0.4, 0.8)
    },
    **{
        f"momentum of the polish {share:g}": lambda plan, m=share: _polished(plan, momentum=m)
        for share in (0.0, 0.5, 0.75, 0.9)
    },
    **{f"elites {count}": lambda plan, e=count: replace(plan, elites=e) for count in (4, 8, 16)},
    **{f"probes {count}": lambda plan, k=count: inner(plan, probes=k) for count in (1, 4, 16)},
}


def _polished(plan: Recombination, **changes: float) -> Recombination:
    """The plan with another polish, if it is that on the way to a threshold."""
    if not isinstance(plan.polish, Sign):
        return plan
    return replace(plan, polish=replace(plan.polish, **changes))  # pyright: ignore


def _with_last(plan: Recombination, polish: Solver | None, finish: Solver | None) -> Recombination:
    """The plan with other last rounds, which take as many steps where there are any."""
    before = [solver for solver in (plan.polish, plan.finish) if solver is not None]
    steps = sum(solver.steps for solver in before)
    if polish is None and finish is None:
        first = replace(plan.first, steps=plan.first.steps + steps // plan.epochs)
        return replace(plan, polish=None, finish=None, first=first)
    return replace(
        plan,
        polish=polish and replace(polish, steps=steps),
        finish=finish and replace(finish, steps=steps),
    )


class EntropyEveryOtherTurn(Margin):
    """The margin, whose alternatives are those of the cross-entropy."""

    def alternative(self, outputs: Tensor, turn: Tensor) -> fw.objectives.Objective:
        return CrossEntropy(self.labels).alternative(outputs, turn)


def success(case: Case, name: str, change: Change, options: argparse.Namespace) -> list[float]:
    """Shares of images that are misclassified, one for each seed."""
    first = 0 if case.network == "digits" else 1000
    target = Target.of(case, options.device, slice(first, first + options.images))
    margin = Margin(target.labels)
    auto, shares_room = Auto(evaluations=options.budget), target.space.shares_room
    plan = change(_recombined(auto.plan(to_the_last_digit=False, shares_room=shares_room)))
    objective = margin
    if isinstance(plan, Recombination) and not plan.mixed:
        objective = Guided(margin, CrossEntropy(target.labels))
    elif name == MORE_ENTROPY:
        objective = EntropyEveryOtherTurn(target.labels)
    problem = fw.Problem(target.model, objective, target.space)
    return [
        100 * (_values(problem, plan, seed, stop_at=SOLVED) > 0).float().mean().item()
        for seed in range(options.seeds)
    ]


def best_values(model: str, change: Change, options: argparse.Namespace) -> Tensor:
    """The best value found on each random network, `(seeds, networks)`."""
    stack = StackedNetworks([random_network(SIZES[model], s) for s in range(options.networks)])
    inputs = SIZES[model][0]
    space = fw.Box(-1, 1, shape=(inputs,))
    if options.norm != "inf":
        radius = {"2": 0.6 * inputs**0.5, "1": 0.5 * inputs}[options.norm]
        space = BALLS[options.norm](torch.zeros(options.networks, inputs), radius)
    problem = fw.Problem(stack.to(options.device), fw.objectives.Output(0), space)
    auto = Auto(evaluations=3 * options.budget)
    plan = change(_recombined(auto.plan(inputs=inputs, shares_room=space.shares_room)))
    return torch.stack([_values(problem, plan, seed).cpu() for seed in range(options.seeds)])


def _recombined(plan: Method) -> Recombination:
    assert isinstance(plan, Recombination)
    return plan


def _values(problem: fw.Problem, plan: Method, seed: int, stop_at: float | None = None) -> Tensor:
    seed = 1_000_003 * seed
    return fw.maximize(problem, solver=plan, seed=seed, x0="sample", stop_at=stop_at).value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", choices=["parts", "settings"])
    parser.add_argument(
        "--networks-named",
        nargs="+",
        default=["mnist_cnn_pgd", "mnist-cnn-0.3", "mnist-strided", "cifar-cnn", "digits"],
    )
    parser.add_argument(
        "--norm", default="inf", choices=BY_NORM, help="of the sets: for random networks balls"
    )
    parser.add_argument("--changes", nargs="+", default=[""], help="names contain one of these")
    parser.add_argument("--models", default="AC", help="random networks")
    parser.add_argument("--networks", type=int, default=256, help="how many random ones")
    parser.add_argument("--budget", type=int, default=1000)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--name", help="of the files that are written")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    named = options.networks_named
    cases = [c for c in BY_NORM[options.norm] if any(part in c.name for part in named)]
    known = PARTS if options.table == "parts" else SETTINGS
    changes = {
        name: change
        for name, change in known.items()
        if any(part in name for part in options.changes)
    }
    usual = f"ablation_{options.table}" + ("" if options.norm == "inf" else f"_l{options.norm}")
    title = f"Success (%) at {options.budget} gradients"
    title += "; random networks: mean value at three times" if options.models else ""
    measured: dict[str, dict[str, list[float]]] = {}
    found: dict[str, dict[str, Tensor]] = {}
    for name, change in changes.items():
        measured[name] = {case.name: success(case, name, change, options) for case in cases}
        found[name] = {f"Model {m}": best_values(m, change, options) for m in options.models}
        table, data = page(measured, found)
        save(options.name or usual, title, table, data, options.device, options.out)


def page(
    measured: dict[str, dict[str, list[float]]], found: dict[str, dict[str, Tensor]]
) -> tuple[str, list[dict]]:
    """What is known so far, as a table and as data."""
    some = next(iter(measured))
    limits = {
        model: torch.cat([values[model] for values in found.values()]).amax(0)
        for model in found[some]
    }
    rows, data = [], []
    for name, rates in measured.items():
        cells = [_cell(values) for values in rates.values()]
        entry: dict = {"change": name, "measured": dict(rates), "reach": {}}
        for model, values in found[name].items():
            reach = (values >= (1 - REACHED) * limits[model]).float().mean().item()
            entry["measured"][model] = values.mean(1).tolist()
            entry["reach"][model] = reach
            cells.append(f"{_cell(entry['measured'][model])}; {100 * reach:.0f} %")
        rows.append([name, *cells])
        data.append(entry)
    table = markdown(["", *measured[some], *found[some]], rows)
    if limits:
        table += (
            f"\n\nAfter a mean value: how many networks end within {REACHED:g} of the best value "
            "that any row of the table found."
        )
    return table, data


def _cell(values: list[float]) -> str:
    mean = statistics.mean(values)
    spread = (max(values) - min(values)) / 2
    digits = 1 if mean > 1000 else 3
    return f"{mean:,.{digits}f} ± {spread:,.{digits}f}"


if __name__ == "__main__":
    main()
