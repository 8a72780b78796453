from dataclasses import replace

import numpy as np
import pytest
import torch

from facetwalk.experiments.digits_demo import EPS, Attack, DemoResult, methods
from facetwalk.experiments.digits_figure import draw_digits
from facetwalk.experiments.drawing import check_drawable, save_figure
from facetwalk.solvers import Auto
from facetwalk.types import InputError


def made_up(labels: list[int], guesses: list[int]) -> DemoResult:
    """One attack that turned `labels` into `guesses`, each with confidence 75 %."""
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(len(labels), 1, 8, 8, generator=generator)
    x = (images + EPS * (2 * torch.rand(images.shape, generator=generator) - 1)).clamp(0, 1)
    probability = torch.full((len(labels), 10), 0.25 / 9)
    probability[range(len(labels)), guesses] = 0.75
    none = torch.zeros(len(labels), dtype=torch.int64)
    truth = torch.tensor(labels)
    method = methods(10)[0]
    ran = Auto(evaluations=10).plan()
    attack = Attack(method, ran, x, probability.log(), truth, none, none, 1.0)
    return DemoResult(images, truth, 10, 0, (attack,))


def columns(result: DemoResult) -> list[tuple[str, str]]:
    """The titles of the clean and the attacked digit in each column."""
    panels = [axes for axes in draw_digits(result).axes if axes.images]
    count = len(panels) // 3
    return [(panels[i].get_title(), panels[count + i].get_title()) for i in range(count)]


def test_titles_are_labels_and_predictions():
    assert columns(made_up([1, 2, 3], [4, 5, 6])) == [
        ("1", "4  (75%)"),
        ("2", "5  (75%)"),
        ("3", "6  (75%)"),
    ]


def test_at_most_eight_fooled_images_of_different_digits_are_shown():
    labels = [0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    guesses = [5, 5, 5, 1, 5, 5, 5, 0, 5, 5, 5, 9]
    shown = [label for label, _ in columns(made_up(labels, guesses))]
    assert shown == ["0", "2", "3", "4", "5", "6", "7", "8"]


def test_fooled_images_come_before_others():
    shown = columns(made_up([7, 7, 1], [7, 2, 1]))
    assert shown == [("7", "2  (75%)"), ("1", "1  (75%)"), ("7", "7  (75%)")]


def test_the_difference_is_shown_on_one_scale():
    result = made_up([1, 2], [3, 4])
    panels = [axes for axes in draw_digits(result).axes if axes.images]
    for axes, image, found in zip(panels[4:], result.images, result.attacks[0].x, strict=True):
        (shown,) = axes.images
        assert np.allclose(np.asarray(shown.get_array()), (found - image)[0])
        assert shown.get_clim() == (-1.75 * EPS, 1.75 * EPS)


@pytest.mark.parametrize("count", [1, 3, 8])
def test_titles_and_panels_do_not_overlap(count):
    result = made_up(list(range(count)), [(label + 1) % 10 for label in range(count)])
    figure = draw_digits(result)
    figure.draw_without_rendering()
    width, height = figure.canvas.get_width_height()
    (title,) = (text for text in figure.texts if "No pixel moves" in text.get_text())
    panels = [axes.get_tightbbox() for axes in figure.axes if axes.images]
    boxes = [title.get_window_extent(), *(panel for panel in panels if panel is not None)]
    assert len(boxes) == 3 * count + 1
    for i, box in enumerate(boxes):
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= width
        assert box.y1 <= height
        assert not any(box.overlaps(other) for other in boxes[i + 1 :])


def test_drawing_changes_nothing_global(tmp_path):
    from matplotlib import pyplot, rcParams

    before = dict(rcParams)
    save_figure(draw_digits(made_up([1], [2])), tmp_path / "demo.png")
    assert (tmp_path / "demo.png").stat().st_size > 5000
    assert dict(rcParams) == before
    assert pyplot.get_fignums() == []


def test_unknown_formats_are_refused(tmp_path):
    check_drawable(tmp_path / "demo.png")
    with pytest.raises(InputError, match=r"must end with \..*png"):
        check_drawable(tmp_path / "demo.docx")


def test_the_attack_of_our_default_is_drawn():
    ours, other = made_up([1, 2], [1, 2]), made_up([1, 2], [3, 4])
    both = replace(ours, attacks=(*ours.attacks, *other.attacks))
    assert columns(both) == columns(ours)
