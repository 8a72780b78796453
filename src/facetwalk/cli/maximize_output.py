"""The result of `maximize` as a table and as data."""

from __future__ import annotations

from typing import Any

from facetwalk import Result
from facetwalk.cli.field_values import changed_settings
from facetwalk.cli.output import say, show_table
from facetwalk.cli.solver_names import name_of
from facetwalk.solvers import Method

_ROWS = 20
"""Problems that the table shows."""
_ENTRIES = 16
"""The largest input that is printed."""


def show_result(result: Result, asked: str, starts: int) -> None:
    """Print a row a problem, small inputs, and how they were found.

    `asked` is the name of the solver that the user wanted.
    """
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
    say(*_what_ran(result.solver, asked))
    say(f"{result.seconds:.2f} s, starts: {starts}, seed: {result.seed}")


def _what_ran(solver: Method, asked: str) -> list[str]:
    """The name and settings of a solver; solvers within it have lines of their own."""
    ran = name_of(solver)
    who = asked if asked == ran else f"{asked} ran {ran}"
    settings = changed_settings(solver)
    within = [text for text in settings if text.endswith(")")]
    own = [text for text in settings if text not in within]
    return [f"{who}: {' '.join(own)}", *(f"  {text}" for text in within)]


def as_data(result: Result) -> dict[str, Any]:
    """All of a result."""
    passes, trace = result.evaluations, result.trace
    return {
        "seed": result.seed,
        "solver": result.solver,
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


def _short(number: float) -> str:
    return f"{number:.6g}"
