from dataclasses import replace

import numpy as np
import pytest
import torch

from facetwalk.experiments.attack_figure import Pictures, draw_attack
from facetwalk.types import InputError


def pictures(channels: int, count: int = 3) -> Pictures:
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(count, channels, 6, 5, generator=generator)
    changed = (images + 0.1 * (torch.rand(images.shape, generator=generator) - 0.5)).clamp(0, 1)
    labels = torch.arange(count)
    return Pictures(images, changed, labels, labels + 1, torch.full((count,), 0.75))


def panels(figure):
    return [axes for axes in figure.axes if axes.images]


def test_colour_images_are_shown_in_colour_and_differences_around_grey():
    drawn, given = panels(draw_attack(pictures(3), "title")), pictures(3)
    clean, attacked, change = (drawn[row].images[0].get_array() for row in (0, 3, 6))
    assert np.allclose(clean, given.images[0].permute(1, 2, 0))
    assert np.allclose(attacked, given.adversarial[0].permute(1, 2, 0))
    difference = given.adversarial - given.images
    magnified = 0.5 + 0.5 * difference[0] / difference.abs().max()
    assert np.allclose(change, magnified.permute(1, 2, 0), atol=1e-6)


def test_classes_may_have_names():
    names = ["cat", "dog", "horse", "ship"]
    titles = [axes.get_title() for axes in panels(draw_attack(pictures(1), "title", names))]
    assert titles[:6] == ["cat", "dog", "horse", "dog  (75%)", "horse  (75%)", "ship  (75%)"]


def aimed(names=None):
    """Four images of classes 0 to 3 that an attack brought to classes 1 to 4, wanted or not."""
    given = pictures(1, count=4)
    targets = torch.tensor([3, 2, 0, 4])
    return panels(draw_attack(replace(given, targets=targets), "title", names))


def test_targets_stand_behind_an_arrow_and_decide_what_is_fooled():
    drawn = aimed()
    titles = [axes.get_title() for axes in drawn[:8]]
    assert titles[:4] == ["1 → 2", "3 → 4", "0 → 3", "2 → 0"]  # those that got there come first
    assert titles[4:] == ["2  (75%)", "4  (75%)", "1  (75%)", "3  (75%)"]
    reached, _, missed, _ = (axes.title.get_color() for axes in drawn[4:8])
    assert reached == panels(draw_attack(pictures(1), "title"))[3].title.get_color() != missed


def test_long_names_of_targets_have_a_line_of_their_own():
    names = ["cat", "dog", "automobile", "ship", "fire truck"]
    titles = [axes.get_title() for axes in aimed(names)[:4]]
    assert titles == ["dog\n→ automobile", "ship\n→ fire truck", "cat → ship", "automobile\n→ cat"]


def test_an_attack_that_changed_nothing_can_be_drawn():
    same = pictures(3)
    still = Pictures(same.images, same.images, same.labels, same.labels, same.confidence)
    change = panels(draw_attack(still, "title"))[6].images[0].get_array()
    assert np.allclose(change, 0.5)


@pytest.mark.parametrize("shape", [(4, 10), (4, 2, 8, 8), (4, 8, 8)])
def test_other_inputs_are_refused(shape):
    x = torch.zeros(shape)
    with pytest.raises(InputError, match=r"only images \(N, 1 or 3, height, width\)"):
        Pictures(x, x, torch.zeros(4), torch.zeros(4), torch.zeros(4))
