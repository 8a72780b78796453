import json
import shutil

import pytest

from facetwalk.experiments.ablation import ABLATION, Request, plan
from facetwalk.experiments.reproducing import describe, reproduce
from facetwalk.types import InputError

QUICK = Request(quick=True, networks=2, seeds=2)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("ablation")
    reproduce(ABLATION, plan(QUICK), out)
    return out


def test_there_is_a_record_for_each_cell(finished):
    found = [json.loads(line) for line in (finished / "records.jsonl").read_text().splitlines()]
    cells = plan(QUICK).cells
    assert len(found) == len(cells)
    assert all(cell.is_in(record) for cell, record in zip(cells, found, strict=True))
    for record in found:
        assert 0.98 * record["budget"] <= record["gradients"] <= record["budget"]
        assert len(record["values"]) == 2
        assert record["machine"]
    for name in ("table.md", "comment.md", "figure.png"):
        assert (finished / name).stat().st_size > 200


def test_more_gradients_never_find_less(finished):
    """GD's steps do not depend on how many there are, and the best counts."""
    found = [json.loads(line) for line in (finished / "records.jsonl").read_text().splitlines()]
    gd = {
        r["budget"]: r["values"] for r in found if (r["model"], r["method"]) == ("A, proven", "GD")
    }
    assert set(gd) == {20, 40}
    assert all(few <= many for few, many in zip(gd[20][0], gd[40][0], strict=True))


def test_table_and_figure_can_be_made_of_records_alone(finished, tmp_path):
    for name in ("run.json", "records.jsonl", "left_out.json"):
        shutil.copy(finished / name, tmp_path)
    describe(ABLATION, tmp_path)
    for name in ("table.md", "comment.md"):
        assert (tmp_path / name).read_bytes() == (finished / name).read_bytes()
    assert (tmp_path / "figure.png").exists()


def test_a_folder_of_other_networks_is_refused(finished):
    with pytest.raises(InputError, match="networks 2 and not 3"):
        reproduce(ABLATION, plan(Request(quick=True, networks=3, seeds=2)), finished)
