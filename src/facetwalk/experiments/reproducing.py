"""Runs an experiment into a folder, and makes tables, comment and figure of its records.

`run.json`, `records.jsonl`, `left_out.json` and `commands.txt` are the run itself; `table.md`,
`table.tex`, `comment.md`, `figure.png` and `figure.pdf` can be made again from them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from facetwalk.experiments.commands import commands_of, remember_command
from facetwalk.experiments.drawing import check_drawable, save_figure
from facetwalk.experiments.experiment import Cell, Experiment, Plan, Record
from facetwalk.experiments.latex import latex
from facetwalk.experiments.measuring import measured
from facetwalk.experiments.tables import Table
from facetwalk.messages import reason
from facetwalk.progress import progress_report
from facetwalk.run_folder import RunFolder
from facetwalk.types import InputError, MissingExtraError
from facetwalk.writing import write_whole

_RECORDS, _LEFT_OUT = "records.jsonl", "left_out.json"
_TABLE, _LATEX, _COMMENT = "table.md", "table.tex", "comment.md"
FIGURES = ("figure.png", "figure.pdf")


@dataclass(frozen=True)
class Outcome:
    """What the records of a folder say."""

    records: Sequence[Record]
    tables: Sequence[Table]
    comment: Sequence[str]
    left_out: Sequence[str]
    commands: Sequence[str]
    """What was typed to make the records."""
    files: Sequence[str]
    """Names of the files that were written."""


def reproduce(
    experiment: Experiment,
    plan: Plan,
    out: Path,
    progress: bool = False,
    command: str | None = None,
    processes: int = 1,
) -> Outcome:
    """Measure the cells that `out` has no records of yet, each written as soon as it is there.

    `command` is what makes these records, for tables to name. With several `processes` the cells
    must be picklable.

    >>> from tempfile import TemporaryDirectory
    >>> from facetwalk.experiments.drawing import blank_figure
    >>> blank = Experiment(
    ...     "blank", "", [], lambda _: [], lambda _: [], lambda _: blank_figure(1, 1)
    ... )
    >>> with TemporaryDirectory() as folder:
    ...     plan = Plan({}, [Cell({"part": 1}, "a", lambda: {"value": 2.0})])
    ...     reproduce(blank, plan, Path(folder)).records
    [{'part': 1, 'made_from': 'a', 'value': 2.0}]
    """
    folder = RunFolder(out, {"experiment": experiment.name, **plan.settings}, _RECORDS, _record)
    left = [cell for cell in plan.cells if not _is_done(cell, folder)]
    if command is not None:
        remember_command(out, command)
    with progress_report(progress, experiment.name) as report:
        for cell, record in measured(left, processes, report):
            folder.add([{**cell.about, "made_from": cell.made_from, **record}])
    write_whole(out / _LEFT_OUT, (json.dumps(plan.left_out, indent=1) + "\n").encode())
    return describe(experiment, out)


def describe(experiment: Experiment, out: Path) -> Outcome:
    """Make tables, comment and figure of what `out` holds; no figure without matplotlib.

    >>> describe(Experiment("none", "", [], lambda _: [], lambda _: [], None), Path("nowhere"))
    Traceback (most recent call last):
    facetwalk.types.InputError: nowhere/run.json cannot be read (FileNotFoundError: ...
    """
    settings = _read(out / "run.json")
    if not isinstance(settings, dict) or settings.get("experiment") != experiment.name:
        raise InputError(f"{out} holds no records of the experiment {experiment.name}")
    records = RunFolder(out, settings, _RECORDS, _record).lines
    left_out = _read(out / _LEFT_OUT) if (out / _LEFT_OUT).exists() else []
    tables, comment = experiment.tables(records), experiment.comment(records)
    commands = commands_of(out)
    write_whole(out / _TABLE, _markdown(experiment, tables, left_out, commands).encode())
    write_whole(out / _LATEX, _latex(experiment, tables, commands).encode())
    write_whole(out / _COMMENT, "".join(f"- {sentence}\n" for sentence in comment).encode())
    drawn = bool(records) and _draw(experiment, records, out)
    files = [_RECORDS, _TABLE, _LATEX, _COMMENT, *(FIGURES if drawn else [])]
    return Outcome(records, tables, comment, left_out, commands, files)


def _markdown(
    experiment: Experiment,
    tables: Sequence[Table],
    left_out: Sequence[str],
    commands: Sequence[str],
) -> str:
    parts = [f"# {experiment.title}", *experiment.about]
    parts += [table.markdown() for table in tables]
    parts += ["\n".join(f"- {sentence}" for sentence in left_out)] if left_out else []
    parts += ["Made by\n\n" + "\n".join(f"    {each}" for each in commands)] if commands else []
    return "\n\n".join(parts) + "\n"


def _latex(experiment: Experiment, tables: Sequence[Table], commands: Sequence[str]) -> str:
    head = [experiment.title, *(f"Made by {command}" for command in commands)]
    head.append(r"Needs \usepackage{booktabs, graphicx}")
    parts = ["\n".join(f"% {line}" for line in head), *map(latex, tables)]
    return "\n\n".join(parts) + "\n"


def _record(line: Any) -> dict[str, Any]:
    """A line of `records.jsonl` that a run of ours wrote."""
    record = dict(line)
    if "made_from" not in record:
        raise InputError("it does not say what it was made from")
    return record


def _is_done(cell: Cell, folder: RunFolder[dict[str, Any]]) -> bool:
    record = next((line for line in folder.lines if cell.is_in(line)), None)
    if record is not None and record["made_from"] != cell.made_from:
        raise InputError(
            f"{folder.folder} holds a record of other weights or images ({cell.words}): "
            "choose another "
            "folder, or delete it"
        )
    return record is not None


def _draw(experiment: Experiment, records: Sequence[Record], out: Path) -> bool:
    """Whether the figure could be drawn."""
    paths = [out / name for name in FIGURES]
    try:
        for path in paths:
            check_drawable(path)
    except MissingExtraError:
        return False
    figure = experiment.draw(records)
    for path in paths:
        save_figure(figure, path)
    return True


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (ValueError, OSError) as error:
        raise InputError(f"{path} cannot be read ({reason(error)})") from error
