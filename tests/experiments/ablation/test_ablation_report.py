import math
import statistics
from itertools import pairwise

import pytest
from ablation_records import proven, record

from facetwalk.experiments.ablation.comment import comment
from facetwalk.experiments.ablation.figure import draw
from facetwalk.experiments.ablation.methods import ORDER
from facetwalk.experiments.ablation.summary import optima, summarise
from facetwalk.experiments.ablation.table import tables


def test_means_spreads_and_errors():
    (found,) = summarise([record("GD", [[1.0, 2.0, 6.0], [3.0, 4.0, 8.0]])])
    assert found.mean == 4.0
    assert found.spread == 1.0  # the seeds' means are 3 and 5
    assert found.error == pytest.approx(statistics.stdev([2.0, 3.0, 7.0]) / math.sqrt(3))


def test_the_best_known_is_the_best_of_all_rows_and_seeds_and_proven_optima_stay():
    records = [
        record("GD", [[1.0, 8.0], [2.0, 7.0]]),
        record("ours", [[5.0, 6.0], [4.0, 6.0]], part="long", budget=30_000),
        record("GD", [[100.0, 50.0]], model="C"),
        proven("GD", [[10.001, 29.0]]),
    ]
    found = optima(records)
    assert {name: list(best) for name, best in found.items()} == {
        "A": [5.0, 8.0],
        "C": [100.0, 50.0],
        "A, proven": [10.0, 30.0],
    }
    gd = summarise(records)[0]
    assert gd.shares(found["A"]).tolist() == pytest.approx([9 / 13, 9 / 13])


def test_tables_have_the_papers_numbers_beside_ours():
    values, shares, networks = tables(
        [
            record("ADR-GD (released)", [[43.0], [44.0]], probes=15_000.0),
            record("GD", [[40.0], [40.0]]),
            record("GD", [[36000.0], [36000.0]], model="C"),
            record("ours", [[50.0], [50.0]], part="long", budget=30_000, gradients=29_996.0),
            proven("GD", [[9.0, 30.0], [10.0, 30.0]]),
            proven("GD", [[9.0, 30.0], [10.0, 30.0]], part="curve", budget=100),
        ]
    )
    assert values.title == "Best values on 1 random networks of each model, 2 seeds"
    assert [list(row) for row in values.rows] == [
        ["GD", "3,000", "40.00 ± 0.00", "40.58", "36,000 ± 0", "35,807"],
        ["ADR-GD (released)", "3,000", "43.50 ± 0.50", "43.95", "-", "-"],
        ["ours", "29,996", "50.00 ± 0.00", "", "-", "-"],
    ]
    assert list(shares.rows[0][2:5]) == ["80.000 ± 0.000", "100.000 ± 0.000", "98.750 ± 1.250"]
    assert list(shares.rows[1][2:]) == ["87.000 ± 1.000", "-", "-", "15,000", "-", "-"]
    assert [list(row) for row in networks.rows] == [
        ["one", "10.0000", "10.0100", "9.0000"],
        ["two", "30.0000", "30.0100", "30.0000"],
    ]


def test_baselines_that_adr_gd_beats_and_those_it_does_not():
    said = comment(
        [
            record("GD", [[40.0]]),
            record("Adam", [[41.0]]),
            record("Adagrad", [[43.0]]),
            record("ADR-GD (released)", [[42.0]]),
            record("Sign, restarts", [[45.0]]),
        ]
    )
    start = "Model A: at 3,000 gradients ADR-GD (released) (42.00)"
    assert "Model A: Sign, restarts has the highest mean at 3,000 gradients, 45.00." in said
    assert f"{start} beats GD (40.00) and Adam (41.00)." in said
    assert f"{start} does not beat Adagrad (43.00)." in said
    assert f"{start} does not beat Sign, restarts (45.00)." in said


def test_a_lead_that_seeds_may_make_is_called_so():
    rivals = [record("APGD, restarts", [[49.0], [51.0]]), record("GD", [[40.0], [40.0]])]
    start = "Model A: ours has the highest mean at 3,000 gradients, 50.50"
    (sentence, *_) = comment([*rivals, record("ours", [[50.5], [50.5]])])
    assert sentence == f"{start}, and APGD, restarts less below it than seeds differ."
    (sentence, *_) = comment([rivals[1], record("ours", [[50.5], [50.5]])])
    assert sentence == f"{start}."


@pytest.mark.parametrize(
    ("mean", "verdict"), [(43.95 * 1.029, "+2.9 %, within"), (43.95 * 0.969, "-3.1 %, not within")]
)
def test_three_percent_of_the_papers_mean_is_near(mean, verdict):
    long = {"part": "appendix", "budget": 6000}
    said = comment([record("ADR-GD (released)", [[mean - 1, mean + 1]], **long)])
    (sentence,) = (each for each in said if "the paper" in each)
    assert sentence.endswith(f"and the paper of 43.95: {verdict} 3 %.")
    assert f"over 2 fresh networks (standard error 1.00, {100 / mean:.1f} %)" in sentence


@pytest.mark.parametrize(
    ("mean", "half", "verdict"),
    [
        (45.0, 2.0, "+2.4 %, within 3 %; so few networks cannot decide that."),
        (47.0, 2.0, "+6.9 %, not within 3 %; so few networks cannot decide that."),
        (55.0, 2.0, "+25.1 %, not within 3 %."),
        (45.0, 1.0, "+2.4 %, within 3 %."),
    ],
)
def test_a_mean_decides_nothing_where_networks_differ_too_much(mean, half, verdict):
    long = {"part": "appendix", "budget": 6000}
    said = comment([record("ADR-GD (released)", [[mean - half, mean + half]], **long)])
    (sentence,) = (each for each in said if "the paper" in each)
    assert sentence.endswith(verdict)


def test_runs_that_noise_changes_are_counted():
    gd = record("GD", [[1.0, 2.0], [1.0, 2.0]])
    noisy = record("Perturbed GD", [[1.0, 2.5], [1.0, 2.0]])
    names = "Perturbed GD ends at another value than GD in"
    assert f"Model A: {names} 1 of 4 runs." in comment([gd, noisy])
    one, other = proven("GD", [[9.0, 30.0]]), proven("Perturbed GD", [[9.0, 30.0]])
    assert f"Proven optima: {names} 0 of 2 runs." in comment([one, other])
    assert not any(names in sentence for sentence in comment([noisy]))


def test_the_machine_is_named_where_it_is_known():
    assert comment([record("GD", [[1.0]], machine="loom")])[-1] == "Measured on loom."
    assert not any("Measured" in sentence for sentence in comment([record("GD", [[1.0]])]))


def test_fresh_networks_of_model_b_are_set_beside_the_papers():
    (_, sentence) = comment([record("GD", [[2530.0]], model="B")])
    assert "a mean of 2,530 over 1 fresh network, and the paper of 3,874: -34.7 %" in sentence
    assert sentence.endswith("so few networks cannot decide that.")


def test_parts_of_adr_gd_are_worth_something_or_not():
    long = {"part": "appendix", "budget": 6000}
    names = {"ADR-GD (released)": 50.0, "M1": 49.0, "M2": 45.0, "M3": 50.5, "M4": 49.5}
    records = [record(name, [[value]], **long) for name, value in names.items()]
    said = comment(records)
    expected = "M1 -2.0 %, M2 -10.0 %, M3 +1.0 %, M4 -1.0 %: M3 not below it."
    assert any(sentence.endswith(expected) for sentence in said)
    without = comment([each for each in records if each["method"] != "M3"])
    assert any(sentence.endswith("all below it, as in the paper.") for sentence in without)


@pytest.mark.parametrize(
    ("worst", "words"),
    [
        (9.995, "all of them with every seed (2 networks, 2 seeds); the largest gap is 0.0050."),
        (9.985, "all but one (2 networks, 2 seeds); the largest gap is 0.0150."),
    ],
)
def test_every_seed_has_to_come_near_a_proven_optimum(worst, words):
    values = [[10.0, 30.005], [worst, 30.0]]
    (sentence,) = comment([proven("ours", values, part="long", budget=30_000)])
    expected = "with 30,000 gradients our default comes within 0.01 of"
    assert sentence == f"Proven optima: {expected} {words}"


def many_records() -> list[dict]:
    found = []
    for place, name in enumerate(ORDER):
        for model, scale in (("A", 1.0), ("B", 60.0), ("C", 900.0)):
            found.append(record(name, [[scale * (30 + place)], [scale * 31]], model=model))
        for budget in (100, 3000):
            part = "equal" if budget == 3000 else "curve"
            values = [[5.0 + place / 3, 20.0], [9.0, 30.0]]
            found.append(proven(name, values, part=part, budget=budget))
    return found


def test_the_figure_follows_gaps_and_compares_models():
    figure = draw(many_records())
    curves, dots = figure.axes
    lines = {line.get_label(): line for line in curves.lines}
    # 25 of 40 and 39 of 40
    assert list(lines["GD"].get_ydata()) == pytest.approx([20.0, 20.0])
    assert list(lines["GD"].get_xdata()) == [100, 3000]
    assert list(lines["proven optimum"].get_ydata()) == [0, 0]
    assert "M1" not in lines
    assert [text.get_text() for text in dots.get_yticklabels()] == list(ORDER)
    # 30 and 31 of 42, which the last row has
    (first, *_) = dots.lines
    assert first.get_xdata()[0] == pytest.approx(100 * (1 - 30.5 / 42))


@pytest.mark.parametrize("budgets", [(20, 40, 80, 400), (100, 300, 1000, 3000, 6000, 10_000)])
def test_numbers_of_gradients_stand_apart(budgets):
    figure = draw([proven("ours", [[9.0, 30.0]], part="curve", budget=b) for b in budgets])
    figure.draw_without_rendering()
    axis = figure.axes[0].xaxis
    shown = [text for text in axis.get_ticklabels(which="both") if text.get_text()]
    assert [text.get_text() for text in shown] == [f"{budget:,}" for budget in budgets]
    boxes = [text.get_window_extent() for text in shown]
    assert all(one.x1 < other.x0 for one, other in pairwise(boxes))


def test_nothing_hangs_over_the_edge():
    figure = draw(many_records())
    figure.draw_without_rendering()
    width, height = figure.canvas.get_width_height()
    boxes = [part.get_tightbbox() for part in (*figure.legends, *figure.axes)]
    assert len(boxes) == 4
    for box in boxes:
        assert box is not None
        assert min(box.x0, box.y0) >= 0
        assert box.x1 <= width
        assert box.y1 <= height
    left, right = (legend.get_tightbbox() for legend in figure.legends)
    assert left.x1 < right.x0


def test_little_is_enough_for_tables_and_figure():
    assert tables([]) == []
    assert comment([]) == []
    for records in ([record("GD", [[1.0]])], [proven("ours", [[1.0, 2.0]])]):
        assert tables(records)
        assert len(draw(records).axes) == 2
