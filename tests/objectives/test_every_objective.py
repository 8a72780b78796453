"""What every objective can: be selected, counted, moved and checked."""

import pytest
import torch
from objective_cases import PER_PROBLEM, SHARED


@pytest.mark.parametrize(
    ("objective", "outputs"),
    [*PER_PROBLEM.values(), *SHARED.values()],
    ids=[*PER_PROBLEM, *SHARED],
)
@pytest.mark.parametrize("rows", [[2], [4, 0, 0, 3], [0, 1, 2, 3, 4]])
def test_selected_objectives_score_as_the_rows_of_all(objective, outputs, rows):
    index = torch.tensor(rows)
    selected = objective.select(index)
    assert type(selected) is type(objective)
    torch.testing.assert_close(selected(outputs[index]), objective(outputs)[index])


@pytest.mark.parametrize(("objective", "outputs"), PER_PROBLEM.values(), ids=PER_PROBLEM.keys())
def test_count_is_the_number_of_problems(objective, outputs):
    assert objective.count == 5
    assert objective.select(torch.tensor([0, 2])).count == 2


@pytest.mark.parametrize(("objective", "outputs"), SHARED.values(), ids=SHARED.keys())
def test_count_of_a_shared_objective_is_one(objective, outputs):
    assert objective.count == 1
    assert objective.select(torch.tensor([0, 2])).count == 1


@pytest.mark.parametrize(
    ("objective", "outputs"),
    [*PER_PROBLEM.values(), *SHARED.values()],
    ids=[*PER_PROBLEM, *SHARED],
)
def test_objectives_change_precision_with_the_model(objective, outputs):
    single = objective.to(torch.device("cpu"), torch.float32)
    scores = single(outputs.float())
    assert scores.dtype == torch.float32
    torch.testing.assert_close(scores.double(), objective(outputs), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("objective", "outputs"),
    [*PER_PROBLEM.values(), *SHARED.values()],
    ids=[*PER_PROBLEM, *SHARED],
)
def test_check_accepts_outputs_that_fit(objective, outputs):
    assert objective.check(outputs) is None
    assert objective(outputs).shape == (5,)
