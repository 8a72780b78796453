import torch
import torch.nn.functional as F
from torch import Generator

from facetwalk.training.augmentation import crop_and_flip


def test_crops_are_shifted_and_mirrored_copies():
    images = torch.rand(64, 3, 6, 5, generator=Generator().manual_seed(0))
    padded = F.pad(images, [4] * 4)
    found = set()
    for number, crop in enumerate(crop_and_flip(images, Generator().manual_seed(0))):
        places = [
            (y, x, mirrored)
            for y in range(9)
            for x in range(9)
            for mirrored in (False, True)
            for window in [padded[number, :, y : y + 6, x : x + 5]]
            if torch.equal(crop, window.flip(2) if mirrored else window)
        ]
        assert places
        found.add(places[0])
    assert {y for y, _, _ in found} == {x for _, x, _ in found} == set(range(9))
    assert {mirrored for _, _, mirrored in found} == {False, True}
