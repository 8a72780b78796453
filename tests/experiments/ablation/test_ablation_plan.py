from collections import Counter

import pytest

from facetwalk.experiments.ablation import Request, plan
from facetwalk.experiments.ablation.methods import ADR_GD_FORMS, CURVES, ORDER
from facetwalk.experiments.ablation.proven import proven_optima

FULL = plan(Request(models=("A", "B"), networks=1))


def budgets(model: str, method: str, part: str) -> list[int]:
    return [
        int(cell.about["budget"])
        for cell in FULL.cells
        if (cell.about["model"], cell.about["method"], cell.about["part"]) == (model, method, part)
    ]


@pytest.mark.parametrize("method", ORDER)
@pytest.mark.parametrize("model", ["A", "B", "A, proven"])
def test_every_method_has_the_same_gradients_on_every_group_of_networks(model, method):
    assert budgets(model, method, "equal") == [3000]
    assert budgets(model, method, "appendix") == [6000] * (method in ADR_GD_FORMS)
    assert budgets(model, method, "long") == [30_000] * (method == "ours")


@pytest.mark.parametrize("method", ORDER)
def test_curves_are_of_proven_networks_and_go_as_far_for_all(method):
    assert not budgets("A", method, "curve")
    parts = ("equal", "long", "curve")
    found = sorted(b for part in parts for b in budgets("A, proven", method, part))
    everything = [100, 300, 1000, 3000, 10_000, 30_000]
    assert found == (everything if method in CURVES else [3000])


def test_no_cell_is_that_of_another():
    counted = Counter(tuple(cell.about.items()) for cell in FULL.cells)
    assert set(counted.values()) == {1}
    assert len({cell.made_from for cell in FULL.cells}) == 3


def test_models_may_be_added_to_a_folder_and_proven_networks_come_with_model_a():
    other = plan(Request(models=("B",), networks=1))
    assert other.settings == FULL.settings
    assert {cell.about["model"] for cell in other.cells} == {"B"}
    assert plan(Request(models=("B",), networks=2)).settings != FULL.settings


def test_records_of_proven_networks_say_what_is_proven():
    cells = plan(Request(quick=True, networks=1, seeds=1)).cells
    (cell,) = (
        cell
        for cell in cells
        if cell.about == {"model": "A, proven", "method": "ours", "part": "curve", "budget": 20}
    )
    record, optima = cell.measure(), proven_optima()
    assert record["names"] == [optimum.name for optimum in optima]
    assert record["optima"] == [optimum.value for optimum in optima]
    ((*values,),) = record["values"]
    assert all(v <= bound for v, bound in zip(values, record["bounds"], strict=True))
