"""The toy experiment from its cells to its files."""

import json

import pytest

from facetwalk.experiments.reproducing import reproduce
from facetwalk.experiments.toy import TOY, Request, plan
from facetwalk.experiments.toy.reporting import reached


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("toy")
    return reproduce(TOY, plan(Request(quick=True)), out), out


def test_the_files_are_there(finished):
    outcome, out = finished
    assert all((out / name).stat().st_size > 200 for name in outcome.files)
    assert "figure.png" in outcome.files


def test_every_method_has_a_row(finished):
    outcome, _ = finished
    segments, walks = outcome.tables
    assert [row[0] for row in segments.rows] == ["f2", "f3", "f4", "f1"]
    assert len(walks.rows) == len(plan(Request()).cells) - 1
    assert {row[-1] for row in walks.rows} == {"200"}
    assert "the maximum is 1.200 at x = 1.000, proven" in walks.title


def test_what_records_say_is_what_is_written(finished):
    outcome, _ = finished
    for record, row in zip(outcome.records[1:], outcome.tables[1].rows, strict=True):
        assert row[0] == record["method"]
        assert int(row[-3]) == sum(value >= 1.199 for value in record["best"])
    assert outcome.comment[0].startswith("At the start f1(x) = 0.88 > f3(x) = 0.79 > f2(x)")
    (gd,) = [
        sentence for sentence in outcome.comment if sentence.startswith("GD with steps of 0.0")
    ]
    assert "x = -0.39" in gd
    assert "reached in 10." in outcome.comment[-2]
    assert outcome.comment[-1] == f"Measured on {outcome.records[0]['machine']}."


def test_the_figure_shows_both_walks(finished):
    outcome, _ = finished
    records = [json.loads(json.dumps(record)) for record in outcome.records]
    left, middle, right = TOY.draw(records).axes
    assert left.get_ylabel() == "value"
    by_name = {(record["method"], record.get("step")): record for record in records}
    for axes, key in ((left, ("GD", "0.02")), (middle, ("ADR-GD (softened)", "0.02"))):
        assert any(list(drawn.get_xdata()) == by_name[key]["x"] for drawn in axes.lines)
    assert [text.get_text() for text in right.get_legend().get_texts()] == [
        "gate of u",
        "gate of v",
        "x",
    ]


def test_a_run_that_has_just_begun_can_be_described(finished):
    outcome, _ = finished
    assert TOY.tables([]) == TOY.comment([]) == []
    assert not TOY.draw([]).axes
    assert len(TOY.tables(outcome.records[:1])) == 1
    assert len(TOY.draw(outcome.records[:1]).axes) == 3


def test_only_walks_at_the_maximum_count_as_there():
    assert reached({"best": [1.2, 1.1995, 1.1985]}, 1.2) == 2
