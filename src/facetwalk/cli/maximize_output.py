"""The result of `maximize` as a table and as data."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from facetwalk import Result
from facetwalk.cli.output import say, show_table
from facetwalk.cli.solver_choice import changed_settings
from facetwalk.solvers import Solver

_ROWS = 20
"""Problems that the table shows."""
_ENTRIES = 16
"""The largest input that is printed."""


def show_result(result: Result, solver: str, starts: int) -> None:
    """Print a row a problem, small inputs, and how they were found."""
    passes = result.evaluations
    counts = (passes.backward, passes.forward, passes.probe)
    rows = [
        [
            str(problem),
            _short(result.initial_value[problem].item()),
            _short(result.value[problem].item()),
            str(result.status[problem]),
            *(f"{int(count[problem]):,}" for count in counts),
        ]
        for problem in range(min(len(result.value), _ROWS))
    ]
    show_table(
        ["problem", "initial", "best", "status", "gradients", "forward", "probes"],
        rows,
        words=["status"],
    )
    if len(rows) < len(result.value):
        say(f"... and {len(result.value) - len(rows)} more problems; --json writes all.")
    if result.x[0].numel() <= _ENTRIES:
        for problem in range(len(rows)):
            entries = result.x[problem].flatten().tolist()
            say(f"x of problem {problem}: {' '.join(map(_short, entries))}")
    say(
        f"{solver}: {changed_settings(result.solver)}",
        f"{result.seconds:.2f} s, starts: {starts}, seed: {result.seed}",
    )


def as_data(result: Result, solver: str) -> dict[str, Any]:
    """All of a result."""
    passes, trace = result.evaluations, result.trace
    return {
        "seed": result.seed,
        "solver": {"name": solver, "fields": settings_of(result.solver)},
        "value": result.value,
        "initial_value": result.initial_value,
        "x": result.x,
        "status": result.status,
        "evaluations": {
            "forward": passes.forward,
            "backward": passes.backward,
            "probe": passes.probe,
        },
        "trace": trace and {"evaluations": trace.evaluations, "best": trace.best},
        "seconds": result.seconds,
    }


def settings_of(solver: Solver) -> dict[str, Any]:
    """Every field of a solver."""
    return {field.name: getattr(solver, field.name) for field in fields(solver)}


def _short(number: float) -> str:
    return f"{number:.6g}"
