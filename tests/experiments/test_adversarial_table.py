from itertools import pairwise

import pytest
from synthetic_records import attack, cost

from facetwalk.experiments.adversarial.attacks import ORDER
from facetwalk.experiments.adversarial.figure import draw
from facetwalk.experiments.adversarial.table import tables
from facetwalk.experiments.drawing import save_figure


def test_a_table_has_a_row_for_each_attack_and_means_over_seeds():
    (table,) = tables(
        [
            attack("ours", 0.5, probes=80.0),
            attack("ours", 0.7, seed=1, probes=80.0),
            attack("FGSM", 0.1, gradients=1.0),
            attack("ours", 0.25, targeted=True, objective=-1.0),
        ]
    )
    assert table.title.startswith("mnist-fgsm (MNIST, robust), eps 0.2: 100 images, 1 seed; 1.0%")
    assert [list(row) for row in table.rows] == [
        ["FGSM", "10.0 %", "1.000", "-", "-", "1"],
        ["ours", "60.0 ± 10.0 %", "6.000", "25.0 %", "-1.000", "500 + 80"],
    ]


def test_only_networks_of_the_paper_have_its_numbers_beside_them():
    names = ("PGD (paper)", "ADR-GD (paper)", "ours")
    ours, theirs = tables(
        [attack(name, 0.5, model=model) for model in ("mnist-fgsm", "mnist-pgd") for name in names]
    )
    assert "paper" not in ours.columns
    assert theirs.columns[-1] == "paper"
    assert [row[-1] for row in theirs.rows] == ["4.92 %", "27.93 %", ""]


def test_costs_stand_beside_the_papers():
    missing = cost(64, 0, 0, data="digits", left_out="slow")
    del missing["ratios"]
    (table,) = tables([cost(1, 2.5, 3.0), missing])
    assert [list(row) for row in table.rows] == [
        ["mnist-fgsm", "1", "2.50", "3.00", "17.4", "9,180", "9,180"],
        ["mnist-fgsm", "64", "-", "-", "", "9,180", ""],
    ]


def test_a_network_that_the_paper_does_not_have_stands_beside_none_of_its_numbers():
    found = [cost(1, 1.5, 2.5, data="imagenet", model=name) for name in ("squeezenet1_1", "wide")]
    own, like_theirs = tables(found)[0].rows
    assert [own[4], own[6]] == ["", ""]
    assert [like_theirs[4], like_theirs[6]] == ["6.3", "351,232"]


def many_records() -> list[dict]:
    return [
        attack(name, success, model=model, robust=robust, targeted=targeted)
        for model, robust in (("mnist_cnn_clean", False), ("mnist_cnn_pgd", True), ("x", True))
        for targeted in (False, True)
        for name, success in (("FGSM", 0.1), ("PGD (paper)", 0.25), ("ours", 1.0))
    ]


def test_the_figure_has_a_panel_for_each_measure_goal_and_training():
    figure = draw(many_records())
    assert len(figure.axes) == 8
    assert [axes.get_title() for axes in figure.axes[:2]] == ["natural training", "robust training"]
    clean, robust = figure.axes[:2]
    assert [bar.get_height() for bar in clean.patches] == [10, 25, 100]
    names = [text.get_text() for text in figure.axes[-1].get_xticklabels()]
    assert names == ["mnist_cnn_pgd", "x"]
    (quoted,) = robust.lines
    assert list(quoted.get_ydata()) == [4.92]
    assert len(draw([record for record in many_records() if record["robust"]]).axes) == 4


def test_nothing_hangs_over_the_edge():
    figure = draw(many_records() + [attack(name, 0.5, model="x") for name in ORDER])
    figure.draw_without_rendering()
    width, height = figure.canvas.get_width_height()
    (legend,) = figure.legends
    for part in (legend, *figure.axes):
        box = part.get_tightbbox()
        assert box is not None
        assert min(box.x0, box.y0) >= 0
        assert box.x1 <= width
        assert box.y1 <= height


def test_numbers_above_bars_do_not_overlap():
    figure = draw([attack(name, 1.0, model=model) for model in "abcd" for name in ORDER])
    figure.draw_without_rendering()
    boxes = sorted((t.get_window_extent() for t in figure.axes[0].texts), key=lambda box: box.x0)
    assert len(boxes) == 4 * len(ORDER)
    assert all(one.x1 < other.x0 for one, other in pairwise(boxes))


@pytest.mark.parametrize("success", [0.0, 0.01, 0.04, 0.05, 0.06, 0.12, 0.5, 0.95, 0.97, 1.0])
def test_diamonds_lie_on_no_number(success):
    names = ("PGD (paper)", "ADR-GD (paper)")
    models = [("mnist_cnn_clean", False), ("mnist_cnn_pgd", True)]
    figure = draw(
        [
            attack(name, success, model=model, robust=robust)
            for model, robust in models
            for name in names
        ]
    )
    figure.draw_without_rendering()
    for axes in figure.axes[:2]:
        numbers = [text.get_window_extent() for text in axes.texts]
        diamonds = [line.get_window_extent() for line in axes.lines]
        assert len(numbers) == 2
        assert diamonds
        assert not any(each.overlaps(number) for each in diamonds for number in numbers)
        assert all(number.y1 <= axes.get_window_extent().y1 for number in numbers)


def test_before_the_first_attack_has_finished_there_is_nothing_to_draw():
    records = [cost(1, 2.5, 3.0)]
    assert not draw(records).axes
    assert len(tables(records)) == 1


def test_the_figure_is_a_png_of_the_right_size(tmp_path):
    from PIL import Image

    save_figure(draw(many_records()), tmp_path / "figure.png")
    with Image.open(tmp_path / "figure.png") as image:
        image.verify()
        assert image.format == "PNG"
        assert image.size == (1120, 1520)  # 7 x 9.5 inches with 160 dots each
