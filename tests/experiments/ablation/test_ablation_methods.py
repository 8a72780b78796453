from dataclasses import asdict, replace

import pytest

from facetwalk.experiments.ablation import paper
from facetwalk.experiments.ablation.methods import (
    ADR_GD_FORMS,
    BASELINES,
    CURVES,
    METHODS,
    ORDER,
    VARIANTS,
    restarts,
)
from facetwalk.experiments.random_networks import adr_gd
from facetwalk.solvers import Auto

BY_NAME = {method.name: method for method in METHODS}


@pytest.mark.parametrize("gradients", [20, 60, 100, 300, 1000, 3000, 30_000])
@pytest.mark.parametrize("name", ORDER)
def test_all_spend_the_same_gradients(name, gradients):
    run = BY_NAME[name].run("A", gradients)
    solver = run.solver.plan() if isinstance(run.solver, Auto) else run.solver
    spent = run.starts * solver.evaluations
    assert (0.98 if name == "ours" else 0.999) * gradients <= spent <= gradients


@pytest.mark.parametrize("model", ["A", "B", "C"])
@pytest.mark.parametrize(
    ("variant", "field"),
    [
        ("M1", "objective_moves_gates"),
        ("M2", "penalty_moves_input"),
        ("M3", "normalize_by_normals"),
        ("M4", "perturb"),
    ],
)
def test_a_variant_lacks_one_part_of_the_released_form(variant, field, model):
    whole = adr_gd(model, 3000, "released")
    solver = BY_NAME[variant].run(model, 3000).solver
    assert {name for name, value in asdict(solver).items() if value != getattr(whole, name)} == {
        field
    }
    assert replace(solver, **{field: True}) == whole


def test_restarts_share_the_gradients():
    assert [restarts(n) for n in (20, 300, 1000, 3000)] == [(1, 20), (1, 300), (3, 333), (10, 300)]


def test_every_row_of_the_papers_table_is_there_and_only_those_have_numbers():
    quoted = {method for method, _ in paper.MEANS}
    assert quoted == {*BASELINES, *ADR_GD_FORMS}
    assert set(ORDER) - quoted == {"Sign, restarts", "APGD, restarts", "ours"}
    assert len(paper.MEANS) == 3 * len(quoted)
    assert set(ORDER) - set(CURVES) == set(VARIANTS)
