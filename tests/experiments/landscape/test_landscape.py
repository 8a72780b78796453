"""The landscape experiment from its cells to its files."""

import json

import pytest

from facetwalk.experiments.landscape import LANDSCAPE, Request, plan, planning, traps
from facetwalk.experiments.landscape.walks import ADR_GD, DEFAULT, GD, ONE_RUN
from facetwalk.experiments.reproducing import reproduce

METHODS = (GD, ADR_GD, ONE_RUN, DEFAULT)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A search among few networks, with some of the methods."""
    out = tmp_path_factory.mktemp("landscape")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(traps, "METHODS", METHODS)
        patch.setattr(planning, "_QUICK_NETWORKS", 3)
        patch.setattr(planning, "_QUICK_STARTS", 6)
        return reproduce(LANDSCAPE, plan(Request(quick=True)), out), out


def test_the_files_are_there(finished):
    outcome, out = finished
    assert all((out / name).stat().st_size > 200 for name in outcome.files)
    assert "figure.png" in outcome.files


def test_every_method_has_its_rows(finished):
    outcome, _ = finished
    methods, panels = outcome.tables
    names = [method.name for method in METHODS]
    assert [row[0] for row in methods.rows] == names
    assert [row[1] for row in panels.rows if row[0] == "c"] == names
    assert [row[0] for row in panels.rows[-2:]] == ["d", "d"]
    assert "3 networks 2-12-12-1, 6 random starts each" in methods.title


def test_drawn_traps_are_traps(finished):
    outcome, _ = finished
    walks = outcome.records[1]
    assert walks["all_proven"]
    assert 0 < walks["left_by_ours"] <= walks["traps"] <= 18
    for picture in walks["pictures"].values():
        top, local = picture["highest"], picture["local"]
        height = top["value"] - top["lowest"]
        assert local["certified"]
        assert top["value"] - local["value"] > 0.01 * height
        assert top["value"] - picture["walks"][DEFAULT.name]["best"] <= 0.01 * height
        assert picture["walks"][GD.name]["best"] <= local["value"] + 1e-6
        end = picture["paths"][GD.name][-1]
        assert max(abs(a - b) for a, b in zip(end, local["x"], strict=True)) <= 0.15


def test_sentences_are_those_of_the_records(finished):
    outcome, _ = finished
    walks = outcome.records[1]
    (trapped,) = [sentence for sentence in outcome.comment if sentence.startswith("From 18 random")]
    assert f"is trapped {walks['traps']} times ({walks['traps'] / 18:.1%})" in trapped
    assert f"in {walks['left_by_ours']} of these." in trapped
    assert outcome.comment[-1] == f"Measured on {walks['machine']}."


def test_the_figure_shows_the_steps_and_the_arrows(finished):
    outcome, _ = finished
    records = [json.loads(json.dumps(record)) for record in outcome.records]
    panels = LANDSCAPE.draw(records).axes
    assert [axes.get_title()[:3] for axes in panels] == ["(a)", "(b)", "(c)", "(d)"]
    walked = records[1]["pictures"]["c"]["paths"][GD.name]
    assert any([list(xy) for xy in line.get_xydata()] == walked for line in panels[2].lines)
    picture = records[2]["picture"]
    tips = [text.xy for text in panels[3].texts]
    for key, (x, y) in zip(("minus", "plus"), tips, strict=True):
        dx, dy = x - picture["x"][0], y - picture["x"][1]
        gx, gy = picture[key]
        assert dx * gy == pytest.approx(dy * gx, abs=1e-9)
        assert dx * gx + dy * gy > 0


def test_nothing_found_is_nothing_drawn(finished):
    outcome, _ = finished
    patterns, walks, hyperplanes = outcome.records
    bare = [patterns, {**walks, "pictures": {}}, {**hyperplanes, "picture": None}]
    assert len(LANDSCAPE.draw(bare).axes) == 4
    assert [row[0] for row in LANDSCAPE.tables(bare)[1].rows] == ["a"]
    assert LANDSCAPE.comment(bare)[-2].startswith("Of ")
    assert LANDSCAPE.tables([]) == LANDSCAPE.comment([]) == []
