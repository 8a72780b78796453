"""`facetwalk solvers`: the methods and their settings."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from facetwalk.cli import options
from facetwalk.cli.field_values import printed
from facetwalk.cli.output import say_wrapped
from facetwalk.cli.results import Output, check_outputs, write_json
from facetwalk.cli.solver_docs import FieldDoc, SolverDoc, document
from facetwalk.cli.solver_names import METHODS, solver_class
from facetwalk.solvers.adr_gd_settings import EXPERIMENTS, PRESETS

_OF_ADR_GD = {"presets": list(PRESETS), "experiments": list(EXPERIMENTS)}


def solvers(
    name: Annotated[str | None, typer.Argument(help="One solver; by default all.")] = None,
    json: options.Json = None,
) -> None:
    """List the solvers, their fields, and the presets and experiments of adr-gd."""
    check_outputs([Output("--json", json, ".json")])
    kinds = METHODS if name is None else {name: solver_class(name)}
    docs = [document(name, kind) for name, kind in kinds.items()]
    for doc in docs:
        _show(doc)
    if json is not None:
        write_json(json, {"solvers": [_as_data(doc) for doc in docs]})


def _show(doc: SolverDoc) -> None:
    console = Console(highlight=False)
    console.print(Text.assemble((doc.name, "bold"), _cost(doc.gradients_per_step)))
    say_wrapped(doc.summary)
    for field in doc.fields:
        console.print(_line(field))
        say_wrapped(field.doc, indent=6)
    if doc.name == "adr-gd":
        for option, names in _OF_ADR_GD.items():
            say_wrapped(f"{option}: {', '.join(names)}", indent=2)
    console.print()


def _cost(gradients: int | None) -> str:
    if gradients is None:
        return ""
    return f"  ({gradients} {'gradient' if gradients == 1 else 'gradients'} a step)"


def _line(field: FieldDoc) -> Text:
    allowed = f"({field.type})" if field.settable else "(fixed)"
    return Text.assemble("  ", (field.name, "cyan"), f" = {printed(field.default)}  {allowed}")


def _as_data(doc: SolverDoc) -> dict[str, Any]:
    """`asdict` would take the solvers apart that are defaults of fields."""
    data = vars(doc) | {"fields": [vars(field) for field in doc.fields]}
    return data | (_OF_ADR_GD if doc.name == "adr-gd" else {})
