"""Runs experiments one after the other, and writes the page as far as it has come."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from facetwalk.experiments.commands import command_of, commands_of, remember_command
from facetwalk.experiments.report.finished import Finished
from facetwalk.experiments.report.page import page
from facetwalk.experiments.report.parts import Asked, Part
from facetwalk.experiments.reproducing import Outcome, describe, reproduce
from facetwalk.run_folder import RunFolder
from facetwalk.types import FacetwalkError, InputError, MissingExtraError
from facetwalk.writing import write_whole

PAGE = "index.html"
_NAME = "all"


def run_all(
    parts: Sequence[Part], asked: Asked, out: Path, progress: bool = False
) -> list[Finished]:
    """Run every part into a folder of its own, and go on with the next where one fails.

    Run again, it goes on where it was. Raises `InputError` for a folder of another report.
    """
    settings = {"experiment": _NAME, "device": asked.device, "quick": asked.quick}
    RunFolder(out, settings, "records.jsonl", dict)
    remember_command(out, command_of(_NAME, asked, out))

    def measure(part: Part, folder: Path) -> Outcome:
        request = part.ask(asked)
        command = command_of(part.experiment.name, request, folder)
        return reproduce(part.experiment, part.plan(request, folder), folder, progress, command)

    return _finish(parts, out, measure, progress)


def describe_all(parts: Sequence[Part], out: Path) -> list[Finished]:
    """Measure nothing: the page, tables and figures of what is there."""
    there = [part for part in parts if (out / part.experiment.name / "run.json").exists()]
    if not there:
        raise InputError(f"{out} holds no experiments")

    def read(part: Part, folder: Path) -> Outcome | None:
        return describe(part.experiment, folder) if part in there else None

    return _finish(parts, out, read)


def _finish(
    parts: Sequence[Part],
    out: Path,
    outcome: Callable[[Part, Path], Outcome | None],
    progress: bool = False,
) -> list[Finished]:
    done = [Finished(part.experiment) for part in parts]
    for number, part in enumerate(parts):
        name = part.experiment.name
        if progress:
            sys.stderr.write(f"{number + 1} of {len(parts)}: {name}\n")
        try:
            done[number] = Finished(part.experiment, outcome(part, out / name))
        except MissingExtraError as error:
            done[number] = Finished(part.experiment, left_out=str(error))
        except FacetwalkError as error:
            done[number] = Finished(part.experiment, failed=str(error))
        write_whole(out / PAGE, page(done, commands_of(out)).encode())
    return done
