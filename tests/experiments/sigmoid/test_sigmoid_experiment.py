import json
import math
from typing import Any

import pytest

from facetwalk.experiments.reproducing import reproduce
from facetwalk.experiments.sigmoid import SIGMOID, Request, plan
from facetwalk.experiments.sigmoid.comment import comment
from facetwalk.experiments.sigmoid.figure import draw
from facetwalk.experiments.sigmoid.table import tables

ALPHAS = [20, 200, 2000, 20000]


def record(method: str, values: list[list[float]], **changes: Any) -> dict[str, Any]:
    """What the seeds of one method found on the networks of Model A."""
    found = {"model": "A", "method": method, "values": values, "gradients": 6000.0, "probes": 0.0}
    return {**found, **changes}


def some_records() -> list[dict]:
    forms = [
        record(name, [[mean - 1, mean + 1], [mean, mean + 2]], alpha=alpha, model=model)
        for name, high in (("ADR-GD (released)", 42.0), ("ADR-GD (paper)", 38.0))
        for model in ("A", "B")
        for alpha, mean in zip(ALPHAS, (30.0, 40.0, high, 41.0), strict=True)
    ]
    return [*forms, record("GD", [[39.0, 41.0], [39.0, 41.0]])]


def test_every_sharpness_of_both_forms_has_as_many_gradients_as_gd():
    cells = plan(Request(models=("A", "B"), networks=1)).cells
    solvers = [cell.measure.args[0].args[0].solver for cell in cells]  # pyright: ignore
    assert {solver.evaluations for solver in solvers} == {6000}
    for model in ("A", "B"):
        for name in ("ADR-GD (released)", "ADR-GD (paper)"):
            found = [
                solver.sharpness
                for cell, solver in zip(cells, solvers, strict=True)
                if (cell.about["model"], cell.about["method"]) == (model, name)
            ]
            assert found == ALPHAS
    assert [cell.about["model"] for cell in cells if cell.about["method"] == "GD"] == ["A", "B"]


def test_the_quick_form_writes_everything(tmp_path):
    asked = plan(Request(quick=True, networks=2, seeds=1))
    outcome = reproduce(SIGMOID, asked, tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "records.jsonl").read_text().splitlines()]
    assert len(lines) == len(asked.cells) == 9
    assert {line["gradients"] for line in lines} == {60.0}
    assert outcome.comment[-1] == f"Measured on {lines[0]['machine']}."
    assert {"records.jsonl", "table.md", "comment.md", "figure.png"} <= set(outcome.files)
    assert "The quick form has Model A alone" in (tmp_path / "table.md").read_text()


def test_the_table_has_gd_first_and_the_papers_numbers():
    (table,) = tables(some_records())
    assert table.title == "2 random networks of each model, 2 seeds"
    assert list(table.rows[0]) == ["GD", "", "40.00 ± 0.00", "40.58", "-", "-", "6,000", "0", "-"]
    start = ["ADR-GD (released)", "20", "30.50 ± 0.50", "25.84", "30.50 ± 0.50", ""]
    assert list(table.rows[1][:6]) == start
    assert [row[1] for row in table.rows[1:]] == ["20", "200", "2,000", "20,000"] * 2
    assert tables([]) == []


def test_the_best_sharpness_and_what_gd_beats():
    said = comment(some_records())
    start = "Model A, ADR-GD (released): "
    assert f"{start}the best sharpness is 2,000, 42.50; the paper's is 20,000." in said
    assert f"{start}GD, 40.00, beats it at sharpness 20." in said
    assert "Model A, ADR-GD (paper): GD, 40.00, beats it at sharpness 20, 2,000." in said
    assert "Model B, ADR-GD (paper): the best sharpness is 20,000, 41.50." in said
    low = [record("GD", [[1.0]]), record("ADR-GD (paper)", [[2.0]], alpha=20)]
    assert "Model A, ADR-GD (paper): GD, 1.00, never beats it." in comment(low)


def test_the_figure_has_the_sigmoids_and_a_panel_for_each_model():
    sigmoids, a, b = draw(some_records()).axes
    assert [axes.get_title() for axes in (a, b)] == ["Model A", "Model B"]
    for line, alpha in zip(sigmoids.lines, ALPHAS, strict=True):
        for eta, gate in zip(line.get_xdata(), line.get_ydata(), strict=True):
            power = min(700.0, -alpha * (eta - 0.5))
            assert gate == pytest.approx(1 / (1 + math.exp(power)), abs=1e-9)
    values = {line.get_label(): list(line.get_ydata()) for line in a.lines}
    assert values["ADR-GD, the paper says"] == [25.84, 43.75, 43.95, 44.12]
    assert values["GD"] == [40.0, 40.0]
    assert "ADR-GD, the paper says" not in [line.get_label() for line in b.lines]


def test_nothing_hangs_over_the_edge():
    figure = draw(some_records())
    figure.draw_without_rendering()
    width, height = figure.canvas.get_width_height()
    for axes in figure.axes:
        box = axes.get_tightbbox()
        assert box is not None
        assert min(box.x0, box.y0) >= 0
        assert box.x1 <= width
        assert box.y1 <= height
