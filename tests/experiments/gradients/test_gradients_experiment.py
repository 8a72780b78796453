"""The gradients experiment from its cells to its files."""

import json

import pytest
import torch
from data_files import idx, random_bytes, write_mnist

from facetwalk.experiments.adversarial.data_sets import DATA_SETS
from facetwalk.experiments.gradients import GRADIENTS, Request, plan, planning
from facetwalk.experiments.gradients.cases import image_cases
from facetwalk.experiments.reproducing import reproduce
from facetwalk.types import InputError
from facetwalk.zoo import MnistCnn


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("gradients")
    with pytest.MonkeyPatch.context() as patch:
        for name, number in (("STEPS", 6), ("LOOKS", 2), ("NETWORKS", 2)):
            patch.setattr(planning, f"_QUICK_{name}", number)
        return reproduce(GRADIENTS, plan(Request(quick=True)), out), out


def test_there_is_a_row_for_each_case_and_method(finished):
    outcome, out = finished
    (table,) = outcome.tables
    assert [row[:2] for row in table.rows] == [
        [model, method] for model in ("Model A", "digits") for method in ("GD", "sign ascent")
    ]
    assert all(row[-2] == "2" for row in table.rows)
    for row, record in zip(table.rows, outcome.records, strict=True):
        assert int(row[-1]) == 12 - record["stood_still"]
    assert len(outcome.comment) == 9
    assert outcome.comment[-1] == f"Measured on {outcome.records[0]['machine']}."
    assert all((out / name).stat().st_size > 200 for name in outcome.files)


def test_records_are_consistent(finished):
    outcome, _ = finished
    for record in outcome.records:
        assert record["looked_at"] == [0, 5]
        assert record["ratio"] == sorted(record["ratio"])
        assert len(record["flips_by_step"]) == record["steps"] == 6
        assert len(record["ratio_by_block"]) == 2  # five steps, and one
        assert len(record["left"]) == len(record["near"]) == record["instances"] == 2
        assert record["held"] <= record["tried"] <= 4
        for near, missed in zip(record["near"], record["missed"], strict=True):
            assert missed <= near <= record["neurons"]


def test_the_figure_shows_what_the_records_say(finished):
    outcome, _ = finished
    records = [json.loads(json.dumps(record)) for record in outcome.records]
    axes = GRADIENTS.draw(records).axes
    assert len(axes) == 6
    ratios = axes[0].lines[0]
    assert list(ratios.get_ydata()) == [row[2] for row in records[0]["ratio_by_block"]]
    assert list(ratios.get_xdata()) == [3, 8]
    widths = [bar.get_width() for bar in axes[2].patches]
    expected = [
        50 * sum(records[number][name])
        for number in (0, 2)
        for name in ("left", "lost", "missed_any")
    ]
    assert widths == pytest.approx(expected)


def test_steps_at_which_all_stood_still_are_left_out(finished):
    outcome, _ = finished
    record = dict(outcome.records[0])
    record["ratio_by_block"] = [[None] * 5, *record["ratio_by_block"][1:]]
    record["flips_by_step"] = [None, *record["flips_by_step"][1:]]
    record["left"] = [None, 0.5]
    figure = GRADIENTS.draw([record])
    assert list(figure.axes[0].lines[0].get_xdata()) == [8]
    assert list(figure.axes[3].lines[0].get_xdata()) == [2, 3, 4, 5, 6]
    assert GRADIENTS.tables([record])[0].rows[0][3] == "50.0 ± 0.0 %"
    assert GRADIENTS.tables([]) == GRADIENTS.comment([]) == []
    assert not GRADIENTS.draw([]).axes


def test_curves_differ_by_more_than_their_colour(finished):
    outcome, _ = finished
    records = [{**outcome.records[0], "model": name} for name in "abc"]
    ratios, flips = (GRADIENTS.draw(records).axes[number].lines[:3] for number in (0, 3))
    assert [line.get_linestyle() for line in ratios] == ["-", "--", "-"]
    assert [line.get_linestyle() for line in flips] == ["-", "--", "-"]


def test_classifiers_that_are_there_are_found(tmp_path):
    images, labels = random_bytes(6, 28, 28), random_bytes(6, high=10)
    write_mnist(tmp_path, "t10k", idx(images), idx(labels), zipped=False)
    torch.manual_seed(0)
    torch.save(MnistCnn().state_dict(), tmp_path / "mnist_cnn_pgd.pt")
    cases, missing = image_cases(tmp_path, tmp_path, 2, "cpu")
    case = {case.name: case for case in cases}["mnist_cnn_pgd"]
    assert case.neurons == 8396
    assert len(cases) + len(missing) == len(DATA_SETS["mnist"].networks)
    assert "mnist_cnn_clean is left out" in missing[-1]
    space = case.problem.space
    far = torch.full((2, 1, 28, 28), 9.0, dtype=torch.float64)
    torch.testing.assert_close(space.project(far), (space.center + 0.2).clamp_max(1))


def test_without_images_only_random_networks_are_measured():
    found = plan(Request(networks=1))
    assert [cell.about["model"] for cell in found.cells[::2]] == ["Model A", "Model B", "Model C"]
    assert found.left_out == ["MNIST is left out: no folder of images is given."]


def test_what_cannot_be_done_is_refused(tmp_path):
    with pytest.raises(InputError, match="networks must be at least 1; it is 0"):
        Request(networks=0)
    with pytest.raises(InputError, match="the quick form has data and a network of its own"):
        Request(nets=tmp_path, quick=True)
