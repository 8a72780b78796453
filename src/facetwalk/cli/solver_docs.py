"""What there is to know about a solver: its fields, and the strings that document them."""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass, fields, is_dataclass
from itertools import pairwise

from facetwalk.cli.field_values import described, field_types
from facetwalk.cli.solver_names import AnySolver
from facetwalk.solvers import Solver


@dataclass(frozen=True)
class FieldDoc:
    """A field of a solver."""

    name: str
    type: str
    """What to write after `--set name=`."""
    default: object
    doc: str
    settable: bool


@dataclass(frozen=True)
class SolverDoc:
    """A solver, its first line of documentation and its fields."""

    name: str
    summary: str
    gradients_per_step: int | None
    """None where that depends on the solver within."""
    fields: tuple[FieldDoc, ...]


def document(name: str, solver: type[AnySolver]) -> SolverDoc:
    """The documentation of a solver under the name that the command line uses."""
    types, docs, usual = field_types(solver), _field_docs(solver), solver()
    field_docs = [
        FieldDoc(
            name=field.name,
            type=described(types[field.name]),
            default=getattr(usual, field.name),
            doc=docs.get(field.name, ""),
            settable=field.init,
        )
        for field in fields(solver)
    ]
    summary = (inspect.getdoc(solver) or "").splitlines()[0]
    gradients = solver.gradients_per_step if issubclass(solver, Solver) else None
    return SolverDoc(name, summary, gradients, tuple(field_docs))


def _field_docs(solver: type[AnySolver]) -> dict[str, str]:
    docs: dict[str, str] = {}
    for base in reversed(solver.__mro__):
        if is_dataclass(base):
            docs |= _strings_after_fields(base)
    return docs


def _strings_after_fields(kind: type) -> dict[str, str]:
    """The string literal that follows each annotated field in a class's own source."""
    tree = ast.parse(inspect.cleandoc(inspect.getsource(kind)))
    docs = {}
    for statement, following in pairwise(tree.body[0].body):  # pyright: ignore
        match statement, following:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(ast.Constant(str(text))):
                docs[name] = " ".join(text.split())
    return docs
